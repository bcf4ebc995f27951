/* A button that opens a long list to choose one of, which typing narrows. For a few entries a Menu is enough. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { announce } from "../app/announce.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { Icon, usePopup } from "./ui.js";

/** @typedef {{ key: string, label: string, isChecked: boolean, onSelect: () => void }} Item */

/** As people type it: without capitals and accents. @param {string} text */
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** @param {Item[]} items @param {string} words */
const matching = (items, words) => {
	const sought = plain(words).split(/\s+/).filter(Boolean);
	return items.filter((item) => sought.every((word) => plain(item.label).includes(word)));
};

/** @param {{ label: string, filter: string, children: any, items: Item[], class?: string }} props filter: the name of the box to type in */
export function Picker({ label, filter, children, items, class: name = "" }) {
	const [isOpen, setOpen] = useState(false);
	const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
	const popup = useRef(/** @type {HTMLElement | null} */ (null));
	usePopup(isOpen, setOpen, button, popup);
	const close = () => {
		setOpen(false);
		button.current?.focus();
	};
	return html`<div class=${`menu ${name}`}>
		<button type="button" class="menu-button" aria-haspopup="listbox" aria-expanded=${isOpen} ref=${button} onClick=${() => setOpen(!isOpen)}>${children}</button>
		${isOpen && html`<div class="menu-list picker" ref=${popup}><${Choices} label=${label} filter=${filter} items=${items} onClose=${close} onLeave=${() => setOpen(false)} /></div>`}
	</div>`;
}

/** @param {{ label: string, filter: string, items: Item[], onClose: () => void, onLeave: () => void }} props */
function Choices({ label, filter, items, onClose, onLeave }) {
	const id = useId();
	const [words, setWords] = useState("");
	const [at, setAt] = useState(() => Math.max(0, items.findIndex((item) => item.isChecked)));
	const box = useRef(/** @type {HTMLInputElement | null} */ (null));
	const list = useRef(/** @type {HTMLElement | null} */ (null));
	const found = matching(items, words);
	useLayoutEffect(() => box.current?.focus({ preventScroll: true }), []);
	useLayoutEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at, words]);
	/** @param {any} event */
	const onInput = (event) => {
		const typed = event.currentTarget.value;
		setWords(typed);
		setAt(0);
		announce(t("chats.found", { count: matching(items, typed).length }));
	};
	/** @param {KeyboardEvent} event */
	const onKeyDown = (event) => {
		if (event.isComposing) return;
		if (event.key === "Tab") return onLeave();
		const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
		if (to === undefined && event.key !== "Enter" && event.key !== "Escape") return;
		event.preventDefault();
		event.stopPropagation();
		if (event.key === "Escape") onClose();
		else if (to !== undefined) setAt((to + found.length) % (found.length || 1));
		else if (found[at]) choose(found[at]);
	};
	/** @param {Item} item */
	const choose = (item) => {
		onClose();
		item.onSelect();
	};
	return html`<input
			type="search" role="combobox" ref=${box} aria-label=${filter} placeholder=${filter} value=${words} autocomplete="off"
			aria-autocomplete="list" aria-expanded="true" aria-controls=${id} aria-activedescendant=${found[at] && `${id}-${at}`}
			onInput=${onInput} onKeyDown=${onKeyDown}
		/>
		${!found.length && html`<p class="dim none">${t("chats.nothingFound")}</p>`}
		<ul role="listbox" id=${id} aria-label=${label} ref=${list}>
			${found.map(
				(item, i) => html`<li key=${item.key} id=${`${id}-${i}`} role="option" aria-selected=${item.isChecked} class=${i === at ? "at" : ""} onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => choose(item)}>
					<${Icon} name=${item.isChecked ? "check" : ""} /><span>${item.label}</span>
				</li>`,
			)}
		</ul>`;
}
