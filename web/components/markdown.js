/* Shows a text that is written in Markdown, also while it grows. */
import { memo } from "./memo.js";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { drawFormulas } from "../app/formulas.js";
import { highlight } from "../app/highlight.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { loadMarkdown, parse, safeFragment, tools } from "../app/markdown.js";
import { copyText, IconButton } from "./ui.js";

/** @typedef {{ number: number, document: { id: string, name: string, path: string | null }, page: number | null, content: string, [name: string]: any }} Passage */

export const Markdown = memo(
	/** @param {{ text: string, passages?: Passage[], isGrowing?: boolean, onCite?: (passage: Passage) => void }} props */
	function Markdown({ text, passages = [], isGrowing = false, onCite }) {
		const before = useRef(/** @type {import("../app/markdown.js").Parsed | null} */ (null));
		if (!tools.value) {
			loadMarkdown();
			return html`<div class="markdown plain">${text}</div>`;
		}
		const numbers = new Set(passages.map((each) => each.number));
		/** @param {number} number */
		const label = (number) => t("answer.source", { number, name: passages.find((each) => each.number === number)?.document.name ?? "" });
		const parsed = parse(text, { numbers, label, table: t("table.label"), done: t("task.done"), open: t("task.open") }, before.current);
		before.current = parsed;
		/** @param {MouseEvent} event */
		const onClick = (event) => {
			const cite = event.target instanceof Element ? event.target.closest("[data-cite]") : null;
			const passage = cite && passages.find((each) => String(each.number) === cite.getAttribute("data-cite"));
			if (passage) onCite?.(passage);
		};
		const last = parsed.blocks.length - 1;
		return html`<div class="markdown" dir="auto" onClick=${onClick}>
			${parsed.blocks.map((block, i) =>
				block.kind === "code"
					? html`<${Code} key=${i} code=${block.code} language=${block.language} isGrowing=${isGrowing && i === last} />`
					: html`<${Html} key=${i} html=${block.html} hasMath=${block.hasMath && !(isGrowing && i === last)} />`,
			)}
		</div>`;
	},
);

const Html = memo(
	/** @param {{ html: string, hasMath: boolean }} props */
	function Html({ html: text, hasMath }) {
		const ref = useRef(/** @type {HTMLElement | null} */ (null));
		useLayoutEffect(() => {
			ref.current?.replaceChildren(safeFragment(text));
			if (hasMath && ref.current) drawFormulas(ref.current).catch(() => {}); // without a network they stay as written
		}, [text, hasMath]);
		return html`<div ref=${ref} class="block"></div>`;
	},
);

const Code = memo(
	/** @param {{ code: string, language: string, isGrowing: boolean }} props */
	function Code({ code, language, isGrowing }) {
		const [coloured, setColoured] = useState(/** @type {{ code: string, html: string } | null} */ (null));
		const ref = useRef(/** @type {HTMLElement | null} */ (null));
		useEffect(() => {
			if (isGrowing || !language) return;
			let isWanted = true;
			// Without a network it stays as it is.
			highlight(code, language).then(
				(found) => isWanted && found !== null && setColoured({ code, html: found }),
				() => {},
			);
			return () => {
				isWanted = false;
			};
		}, [code, language, isGrowing]);
		const isColoured = coloured?.code === code;
		useLayoutEffect(() => {
			if (ref.current && isColoured) ref.current.replaceChildren(safeFragment(/** @type {any} */ (coloured).html));
			else if (ref.current) ref.current.textContent = code;
		}, [code, isColoured]);
		return html`<div class="code">
			<div class="code-head"><span>${language}</span><${IconButton} icon="copy" label=${t("code.copy")} onClick=${() => copyText(code)} /></div>
			<pre tabindex="0" role="group" aria-label=${language ? t("code.labelIn", { language }) : t("code.label")} dir="ltr"><code ref=${ref}></code></pre>
		</div>`;
	},
);
