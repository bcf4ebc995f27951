/* The passage that an answer cites, in its document, its words marked. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { Button, Dialog, Waiting } from "./ui.js";

/** What is shown before and behind the passage, until more is asked for. */
const AROUND_CHARS = 6_000;

/** @param {{ passage: any, onClose: () => void }} props */
export function PassageDialog({ passage, onClose }) {
	const [text, setText] = useState(/** @type {string | null} */ (null));
	const [isGone, setGone] = useState(false);
	const [isWhole, setWhole] = useState(false);
	const mark = useRef(/** @type {HTMLElement | null} */ (null));
	useEffect(() => {
		get(`documents/${passage.document.id}/text/`).then(
			(found) => setText(found.text),
			(error) => {
				if (!(error instanceof ApiError)) throw error;
				setGone(true);
			},
		);
	}, [passage]);
	useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [text, isWhole]);
	const page = passage.page ? ` · ${t("answer.page", { page: passage.page })}` : "";
	const [before, after] = around(text ?? "", passage, isWhole ? Infinity : AROUND_CHARS);
	const isCut = text !== null && before.length + passage.content.length + after.length < text.length;
	return html`<${Dialog} title=${t("passage.title", { number: passage.number })} onClose=${onClose} class="wide">
		<p class="dim">${t("passage.document", { name: passage.document.name })}${page}${passage.heading ? ` · ${passage.heading}` : ""}</p>
		${isGone && html`<p class="dim">${t("passage.gone")}</p>`}
		${
			text === null && !isGone
				? html`<${Waiting} />`
				: html`<div class="passage" tabindex="0" role="group" aria-label=${passage.document.name} dir="auto">${before}<mark ref=${mark}>${passage.content}</mark>${after}</div>`
		}
		${isCut && html`<p class="actions"><span class="dim">${t("passage.cut")}</span><${Button} onClick=${() => setWhole(true)}>${t("passage.wholeDocument")}<//></p>`}
	<//>`;
}

/**
 * What stands before and behind the passage. Its position counts characters otherwise than browsers do, so
 * its words are looked for, and of several places the nearest is taken.
 * @param {string} text @param {any} passage @param {number} most characters on each side
 */
function around(text, passage, most) {
	let found = -1;
	for (let at = text.indexOf(passage.content); at >= 0; at = text.indexOf(passage.content, at + 1))
		if (found < 0 || Math.abs(at - passage.start) < Math.abs(found - passage.start)) found = at;
	if (found < 0) return ["", ""];
	const end = found + passage.content.length;
	return [text.slice(Math.max(0, found - most), found), text.slice(end, end + most)];
}
