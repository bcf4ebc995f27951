/* Markdown, as far as answers need it, to elements and text nodes, never HTML. */

/**
 * An element with properties, attributes and listeners (`onclick`).
 * @param {string} tag @param {Record<string, any>} [props] @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
export function el(tag, props = {}, ...children) {
	/** @type {any} */
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(props)) {
		if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
		else if (name in made && !name.startsWith("aria")) made[name] = value;
		else made.setAttribute(name, value);
	}
	made.append(...children.filter((child) => child != null));
	return made;
}

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|!?\[([^\]\n]{0,300})\]\(([^()\s]{1,2000}(?:\([^()\s]{0,300}\))?)[^()\n]{0,300}\)|(https?:\/\/[^\s<>"'）】]+)/;

/** @param {string} text @param {string} address @returns {Node | string} */
export function link(text, address) {
	let url;
	try { url = new URL(address); } catch { return text; }
	if (!/^(https?|mailto):$/.test(url.protocol)) return text;
	return el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, text || address);
}

/** @param {string} text @param {string} marks */
function withoutEnd(text, marks) {
	let end = text.length;
	while (end && marks.includes(text[end - 1])) end--;
	return text.slice(0, end);
}

/** @param {any} into @param {string} text */
function inline(into, text) {
	for (let found; (found = INLINE.exec(text)); ) {
		let [whole, code, strong, weak, label, address, bare] = found;
		into.append(text.slice(0, found.index));
		if (code !== undefined) into.append(el("code", {}, code));
		else if (strong !== undefined) into.append(inline(el("strong"), strong));
		else if (weak !== undefined) into.append(inline(el("em"), weak));
		else if (address !== undefined) into.append(link(label, address));
		else {
			whole = bare = withoutEnd(bare, bare.includes("(") ? ".,;:!?。，" : ".,;:!?)。，");
			into.append(link(bare, bare));
		}
		text = text.slice(found.index + whole.length);
	}
	into.append(text);
	return into;
}

const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const BLOCK = /^\s*(```|#{1,6}\s|>|([-*_])(\s*\2){2,}\s*$)/;

/** @param {string} text @param {number} [depth] @returns {Node} */
export function markdown(text, depth = 0) {
	/** @param {string} inner */
	const nested = (inner) => (depth < 5 ? markdown(inner, depth + 1) : inner);
	const lines = text.replace(/\r\n?/g, "\n").split("\n");
	const made = document.createDocumentFragment();
	/** @param {(line: string) => unknown} while_ */
	const take = (while_) => {
		const taken = [];
		while (lines.length && while_(lines[0])) taken.push(/** @type {string} */ (lines.shift()));
		return taken;
	};
	while (lines.length) {
		const line = lines[0];
		let found;
		if (!line.trim()) lines.shift();
		else if (/^\s*```/.test(line)) {
			lines.shift();
			const code = take((each) => !/^\s*```\s*$/.test(each)).join("\n");
			lines.shift();
			made.append(el("pre", { tabIndex: 0 }, el("code", {}, code)));
		} else if ((found = /^\s*(#{1,6})\s+(.*)$/.exec(line))) {
			lines.shift();
			made.append(inline(el("p", { className: "heading", role: "heading", "aria-level": found[1].length + 2 }), withoutEnd(found[2].trimEnd(), "#")));
		} else if (/^\s*>/.test(line)) {
			const quoted = take((each) => /^\s*>/.test(each)).map((each) => each.replace(/^\s*> ?/, ""));
			made.append(el("blockquote", {}, nested(quoted.join("\n"))));
		} else if (BLOCK.test(line)) {
			lines.shift();
			made.append(el("hr"));
		} else if ((found = ITEM.exec(line))) made.append(list(take, nested, found));
		else if (line.includes("|") && isRule(lines[1] ?? "")) made.append(table(take((each) => each.includes("|"))));
		else {
			const paragraph = el("p");
			take((each) => each.trim() && !BLOCK.test(each) && !ITEM.test(each)).forEach((each, place) => {
				if (place) paragraph.append(el("br"));
				inline(paragraph, each);
			});
			made.append(paragraph);
		}
	}
	return made;
}

/** Whether this stands between a table's head and its rows. @param {string} line */
const isRule = (line) => /^[\s|:-]+$/.test(line) && line.includes("|") && line.includes("-");

/** @param {string[]} lines */
function table([head, , ...rows]) {
	/** @param {string} tag @param {string} line */
	const row = (tag, line) => el("tr", {}, ...line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(el(tag), cell.trim())));
	return el("div", { className: "table", tabIndex: 0 }, el("table", {}, row("th", head), ...rows.map((each) => row("td", each))));
}

/**
 * @param {(while_: (line: string) => unknown) => string[]} take @param {(inner: string) => Node | string} nested
 * @param {RegExpExecArray} first
 */
function list(take, nested, [, indent, number]) {
	const made = el(number ? "ol" : "ul");
	if (number) made.start = Number(number);
	/** @param {string} line */
	const isOurs = (line) => {
		const item = ITEM.exec(line);
		return item && item[1].length <= indent.length && Boolean(item[2]) === Boolean(number);
	};
	for (let first; (first = take(isOurs)).length; ) {
		first.forEach((line) => made.append(el("li", {}, inline(el("span"), /** @type {RegExpExecArray} */ (ITEM.exec(line))[3]))));
		const inner = take((line) => /^\s/.test(line) && line.search(/\S/) > indent.length);
		if (inner.length) made.lastChild.append(nested(inner.map((line) => line.slice(indent.length + 2)).join("\n")));
	}
	return made;
}
