/*
 * Markdown as answers use it, to blocks of safe HTML. What does this is loaded on first use.
 *
 * Two walls: markdown-it lets no HTML through, and DOMPurify takes out all but a list of elements. Nothing
 * in a text is fetched: images become links. Text that grows is parsed anew from its last block on.
 */
import { signal } from "@preact/signals";

/** @typedef {{ kind: "html", html: string, hasMath: boolean } | { kind: "code", code: string, language: string }} Block */
/** @typedef {{ blocks: Block[], source: string, starts: number[], headings: number[][], env: Env }} Parsed */
/** @typedef {{ numbers: Set<number>, label: (number: number) => string, table: string, done: string, open: string, references?: Record<string, unknown> }} Env */
/** @typedef {import("markdown-it").default} MarkdownIt */

/** @type {import("@preact/signals").Signal<{ md: MarkdownIt, purify: import("dompurify").DOMPurify } | null>} */
export const tools = signal(null);
/** @type {Promise<unknown> | null} */
let loading = null;

export function loadMarkdown() {
	loading ??= loadTools().catch(() => {
		// Without a network texts are shown as they were written, until it is back.
		loading = null;
		addEventListener("online", () => loadMarkdown(), { once: true });
	});
	return loading;
}

async function loadTools() {
	// As published they are scripts, which leave their names in the window.
	await Promise.all([import("../vendor/markdown-it.js"), import("../vendor/dompurify.js")]);
	const { markdownit, DOMPurify } = /** @type {any} */ (globalThis);
	tools.value = { md: configure(markdownit({ html: false, linkify: true, breaks: false, typographer: false })), purify: harden(DOMPurify) };
}

const SAFE_LINK = /^(https?:|mailto:)/i;

/** @param {MarkdownIt} md */
function configure(md) {
	md.validateLink = (address) => SAFE_LINK.test(address);
	md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
	md.core.ruler.after("inline", "task", tasks);
	md.inline.ruler.before("link", "citation", citation);
	md.inline.ruler.before("escape", "math", inlineMath);
	md.block.ruler.before("fence", "math", blockMath, { alt: ["paragraph", "blockquote", "list"] });
	const { rules } = md.renderer;
	rules.link_open = (tokens, at, options, _, self) => {
		tokens[at].attrSet("target", "_blank");
		tokens[at].attrSet("rel", "noopener noreferrer nofollow");
		return self.renderToken(tokens, at, options);
	};
	rules.image = (tokens, at) => {
		const { content, attrs } = tokens[at];
		const address = attrs?.find(([name]) => name === "src")?.[1] ?? "";
		return `<a href="${md.utils.escapeHtml(address)}" target="_blank" rel="noopener noreferrer nofollow">${md.utils.escapeHtml(content || address)}</a>`;
	};
	rules.table_open = (_tokens, _at, _options, env) => `<div class="table" role="group" tabindex="0" aria-label="${md.utils.escapeHtml(env.table)}"><table>`;
	rules.table_close = () => "</table></div>";
	for (const name of ["th_open", "td_open"])
		rules[name] = (tokens, at, options, _, self) => {
			const style = tokens[at].attrGet("style");
			if (style) tokens[at].attrs = [["class", style.replace("text-align:", "align-")]];
			return self.renderToken(tokens, at, options);
		};
	rules.cite = (tokens, at, _options, env) =>
		`<button type="button" class="cite" data-cite="${tokens[at].meta}" aria-label="${md.utils.escapeHtml(env.label(tokens[at].meta))}">${tokens[at].meta}</button>`;
	rules.task = (tokens, at, _options, env) => {
		const { meta } = tokens[at];
		return `<span class="task" role="img" aria-label="${md.utils.escapeHtml(meta ? env.done : env.open)}">${meta ? "☑" : "☐"}</span>`;
	};
	rules.math = (tokens, at) => `<span class="math" data-display="${tokens[at].meta ? 1 : ""}">${md.utils.escapeHtml(tokens[at].content)}</span>`;
	rules.math_block = (tokens, at) => `<p class="math-block"><span class="math" data-display="1">${md.utils.escapeHtml(tokens[at].content)}</span></p>`;
	return md;
}

/** `- [x] …`: the box of a task that is done, or is not. @type {import("markdown-it/lib/parser_core.mjs").RuleCore} */
function tasks(state) {
	state.tokens.forEach((token, at) => {
		const first = token.children?.[0];
		const found = state.tokens[at - 2]?.type === "list_item_open" && first?.type === "text" && /^\[([ xX])\]\s/.exec(first.content);
		if (!found) return;
		first.content = first.content.slice(found[0].length);
		const box = new state.Token("task", "", 0);
		box.meta = found[1] !== " ";
		token.children?.unshift(box);
		state.tokens[at - 2].attrSet("class", "has-box");
	});
}

/** `[3]`, where the answer has a source of that number. @type {import("markdown-it/lib/parser_inline.mjs").RuleInline} */
function citation(state, silent) {
	const found = /^\[(\d{1,4})\](?![([])/.exec(state.src.slice(state.pos, state.pos + 8));
	if (!found || !state.env.numbers?.has(Number(found[1]))) return false;
	if (!silent) state.push("cite", "", 0).meta = Number(found[1]);
	state.pos += found[0].length;
	return true;
}

const DELIMITERS = /** @type {const} */ ([
	["$$", "$$", true],
	["\\[", "\\]", true],
	["\\(", "\\)", false],
	["$", "$", false],
]);

/** @type {import("markdown-it/lib/parser_inline.mjs").RuleInline} */
function inlineMath(state, silent) {
	const { src, pos } = state;
	for (const [open, close, isDisplay] of DELIMITERS) {
		if (!src.startsWith(open, pos)) continue;
		const end = src.indexOf(close, pos + open.length);
		const content = src.slice(pos + open.length, end);
		if (end < 0 || !content.trim()) continue;
		// `$5 and $6` is money: between dollars no white space may stand, and no digit behind.
		if (open === "$" && (/^\s|\s$|\n\n/.test(content) || /\d/.test(src[end + 1] ?? ""))) continue;
		if (!silent) {
			const token = state.push("math", "", 0);
			token.content = content;
			token.meta = isDisplay;
		}
		state.pos = end + close.length;
		return true;
	}
	return false;
}

/** @type {import("markdown-it/lib/parser_block.mjs").RuleBlock} */
function blockMath(state, start, end, silent) {
	const lineOf = (/** @type {number} */ at) => state.src.slice(state.bMarks[at] + state.tShift[at], state.eMarks[at]);
	const first = lineOf(start).trim();
	const open = ["$$", "\\["].find((each) => first.startsWith(each));
	if (!open) return false;
	const close = open === "$$" ? "$$" : "\\]";
	if (first.length > 2 && first.indexOf(close, 2) >= 0) return false; // within one line: inline
	if (silent) return true;
	const lines = [first.slice(2)];
	let line = start + 1;
	for (; line < end; line++) {
		const text = lineOf(line).trimEnd();
		if (text.endsWith(close)) {
			lines.push(text.slice(0, -2));
			break;
		}
		lines.push(text);
	}
	state.line = Math.min(line + 1, end);
	const token = state.push("math_block", "", 0);
	token.content = lines.join("\n");
	token.map = [start, state.line];
	return true;
}

const TAGS = "p br hr h2 h3 h4 h5 h6 strong em s del code pre blockquote ul ol li a div table thead tbody tr th td button span".split(" ");
const ATTRIBUTES = "href target rel class start role tabindex aria-label data-cite data-display type title".split(" ");

/** @param {import("dompurify").DOMPurify} purify */
function harden(purify) {
	// All values are held to SAFE_LINK, but for attributes that no browser takes for an address.
	purify.setConfig({ ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ALLOWED_URI_REGEXP: SAFE_LINK, ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== "href"), RETURN_DOM_FRAGMENT: true });
	return purify;
}

/** @param {string} html @returns {DocumentFragment} */
export const safeFragment = (html) => /** @type {any} */ (tools.peek()).purify.sanitize(html);

/**
 * The blocks of a text. `before` is what an earlier state of the text was parsed to: what stands in front
 * of its last block is taken from there.
 * @param {string} source
 * @param {Env} env
 * @param {Parsed | null} before
 * @returns {Parsed}
 */
export function parse(source, env, before = null) {
	const { md } = /** @type {NonNullable<typeof tools.value>} */ (tools.peek());
	const goesOn = before && before.blocks.length > 1 && source.startsWith(before.source) && before.env.numbers.size === env.numbers.size;
	// The last two may change yet: a paragraph's next line can make it a heading or a table.
	const kept = goesOn ? before.blocks.length - 1 : 0;
	const from = goesOn ? before.starts[kept] : 0;
	const ours = goesOn ? before.env : { ...env };
	const rest = source.slice(from);
	const tokens = md.parse(rest, ours);
	const lines = lineStarts(rest);
	const blocks = goesOn ? before.blocks.slice(0, kept) : [];
	const starts = goesOn ? before.starts.slice(0, kept) : [];
	const headings = goesOn ? before.headings.slice(0, kept) : [];
	for (let first = 0; first < tokens.length; ) {
		let last = first;
		for (let depth = tokens[first].nesting; depth > 0; depth += tokens[last].nesting) last++;
		const some = tokens.slice(first, last + 1);
		starts.push(from + (lines[some[0].map?.[0] ?? 0] ?? 0));
		headings.push(level(some, headings.at(-1) ?? []));
		blocks.push(blockOf(some, md, ours));
		first = last + 1;
	}
	return { blocks, source, starts, headings, env: ours };
}

/**
 * Headings of an answer stand below the page's own, one level below the one they belong to, whatever levels
 * the writer chose. Returns the writer's levels that are open behind the block.
 * @param {any[]} tokens @param {number[]} open in front of it
 */
function level(tokens, open) {
	for (const token of tokens) {
		if (token.type === "heading_open") open = [...open.filter((each) => each < Number(token.tag[1])), Number(token.tag[1])];
		if (token.type.startsWith("heading_")) token.tag = `h${Math.min(6, 1 + open.length)}`;
	}
	return open;
}

/** @param {any[]} tokens @param {MarkdownIt} md @param {Env} env @returns {Block} */
function blockOf(tokens, md, env) {
	const [{ type, content, info }] = tokens;
	if (type === "fence" || type === "code_block") return { kind: "code", code: content.replace(/\n$/, ""), language: (info ?? "").trim().split(/\s+/)[0] };
	const html = md.renderer.render(tokens, md.options, env);
	return { kind: "html", html, hasMath: html.includes('class="math"') };
}

/** @param {string} text */
function lineStarts(text) {
	const found = [0];
	for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) found.push(at + 1);
	return found;
}
