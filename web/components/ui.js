/* What all pages are built of: icons, buttons, fields, dialogs, menus, notes. */
import { signal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { announce } from "../app/announce.js";
import { ApiError } from "../app/api.js";
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { isKey, t, time } from "../app/i18n.js";

const PATHS = {
	add: "M12 5v14M5 12h14",
	archive: "M4 4h16v5H4zM5.5 9v10h13V9M10 13h4",
	assistants: "M12 3v3M6 8.5h12a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2v-6.5a2 2 0 0 1 2-2zM9 13v1M15 13v1",
	attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.5 3.5 0 0 1 5 5l-8.5 8.5a1.7 1.7 0 0 1-2.5-2.5L15 7",
	check: "M5 12.5l4.5 4.5L19 7.5",
	chevron: "M9 6l6 6-6 6",
	close: "M6 6l12 12M18 6L6 18",
	copy: "M9 9h11v11H9zM15 9V4H4v11h5",
	document: "M7 3h7l5 5v13H7zM14 3v5h5M10 13h6M10 17h6",
	down: "M6 9l6 6 6-6",
	edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
	end: "M12 5v14M6 13l6 6 6-6",
	export: "M12 4v11M7 10l5 5 5-5M5 20h14",
	help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.400M12 18v.1",
	info: "M12 11v6M12 7v.1M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
	libraries: "M5 4h4v16H5zM11 4h4v16h-4zM17 5l3.5.8L18 20l-2-.5",
	memories: "M12 21c-5-3-8-6-8-10a4.5 4.5 0 0 1 8-2.8A4.5 4.5 0 0 1 20 11c0 4-3 7-8 10z",
	menu: "M4 7h16M4 12h16M4 17h16",
	more: "M5 12a.6.6 0 1 0 1.2 0a.6.6 0 1 0-1.2 0M11.4 12a.6.6 0 1 0 1.2 0a.6.6 0 1 0-1.2 0M17.8 12a.6.6 0 1 0 1.2 0a.6.6 0 1 0-1.2 0",
	pin: "M9 4h6l-1 6 4 4H6l4-4zM12 14v6",
	retry: "M4 12a8 8 0 1 1 2.5 5.8M4 19v-5h5",
	search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
	send: "M12 19V5M6 11l6-6 6 6",
	settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 4.5v5M8 14.5v5",
	sidebar: "M4 5h16v14H4zM10 5v14",
	stop: "M8 8h8v8H8z",
	thumbDown: "M16 4H7.5L4.5 12.5V15H10l-1 5.5L13.5 15H16zM16 4h4v11h-4",
	thumbUp: "M8 20h8.5l3-8.5V9H14l1-5.5L10.5 9H8zM8 20H4V9h4",
	tools: "M14.5 6.5a4 4 0 0 0 5 5L11 20a2.8 2.8 0 0 1-4-4z",
	trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
	usage: "M5 20V11M12 20V4M19 20v-6",
	user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20a7.5 7.5 0 0 1 15 0",
};

/** @param {{ name: string }} props */
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[/** @type {keyof typeof PATHS} */ (name)]} /></svg>`;

/** A button that is only an icon; its label is read and shown on hovering. @param {any} props */
export function IconButton({ icon, label, class: name = "", ...rest }) {
	return html`<button type="button" class=${`icon-button ${name}`} aria-label=${label} title=${label} ...${rest}><${Icon} name=${icon} /></button>`;
}

/** @param {any} props */
export function Button({ kind = "", icon, children, isBusy, class: name = "", ...rest }) {
	return html`<button type="button" class=${`button ${kind} ${name}`} aria-disabled=${isBusy ? "true" : undefined} ...${rest}>
		${icon && html`<${Icon} name=${icon} />`}<span>${children}</span>
	</button>`;
}

/** @param {{ label: string, error?: string, hint?: string, value: string, onValue: (value: string) => void, [name: string]: any }} props */
export function Field({ label, error, hint, value, onValue, as = "input", children, ...rest }) {
	const id = useId();
	const described = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined;
	/** @param {any} event */
	const onInput = (event) => onValue(event.currentTarget.value);
	return html`<div class="field">
		<label for=${id}>${label}</label>
		<${as} id=${id} value=${value} onInput=${onInput} aria-describedby=${described} aria-invalid=${error ? "true" : undefined} ...${rest}>${children}<//>
		${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
		${error && html`<p class="error" id=${`${id}-error`}>${error}</p>`}
	</div>`;
}

/** Amber's words for an error, in the person's language where it is known. @param {unknown} error */
export function wordsOf(error) {
	if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
	if (error.code === "network") return t("error.network");
	if (error.code === "sign_up_closed") return t("error.signUpClosed");
	if (error.code === "rate_limited" && error.retryAfter) return t("error.rateLimited", { count: Math.ceil(error.retryAfter) });
	if (error.code === "other" && error.status >= 500) return t("error.server");
	const wrong = error.code === "invalid" ? Object.keys(error.fields).map((name) => fieldWords(error, name)) : [];
	if (error.fieldCodes.file?.includes("empty")) return wrong.join(" ");
	if (wrong.length) return t("error.fields", { wrong: [...new Set(wrong)].join(" ") });
	return codeWords(error);
}

/** What is wrong with a field, in the person's language where its code has words; else what the server said. @param {ApiError} error @param {string} name */
export function fieldWords({ fields, fieldCodes }, name) {
	const words = fields[name].map((said, i) => {
		const key = `field.${/file is empty/.test(said) ? "file_empty" : / elements\./.test(said) ? "max_items" : fieldCodes[name]?.[i]}`;
		const limit = /\d[\d,]*(?:\.\d+)?/.exec(said)?.[0].replaceAll(",", "");
		const own = isKey(key) ? t(key, limit ? { limit: Number(limit) } : {}) : said;
		return own.includes("{limit}") ? said : own;
	});
	return words.join(" ");
}

/** What a code of docs/errors.md means, in the person's language; of one without words, what the server said. @param {{ code: string, message: string }} error */
export function codeWords({ code, message }) {
	const key = `error.code.${code}`;
	const said = message.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, time);
	return isKey(key) ? t(key, { message: said }) : said;
}

/** What stands in the place of something that failed, if it did. @param {{ error: unknown, onAgain?: () => void }} props */
export const Failure = ({ error, onAgain }) => Boolean(error) && html`<div class="failure" role="alert">
	<p>${wordsOf(error)}</p>
	${onAgain && html`<${Button} kind="quiet" icon="retry" onClick=${onAgain}>${t("again")}<//>`}
</div>`;

export const Waiting = () => html`<p class="waiting" role="status"><span class="dots" aria-hidden="true"></span><span class="unseen">${t("loading")}</span></p>`;

/** A page that says one thing, in the place of what was asked for. @param {{ title: string, text: string, children?: any }} props */
export const PlainPage = ({ title, text, children }) => html`<main class="plain-page" id="content" tabindex="-1">
	<h1>${title}</h1>
	<p>${text}</p>
	${children}
</main>`;

// -- Notes that go by themselves --

/** @type {import("@preact/signals").Signal<{ id: number, text: string, isBad: boolean }[]>} */
const notes = signal([]);
let serial = 0;

/** @param {string} text @param {boolean} [isBad] */
export function note(text, isBad = false) {
	const id = ++serial;
	notes.value = [...notes.value, { id, text, isBad }];
	if (!isBad) announce(text);
	setTimeout(() => dismiss(id), isBad ? 12_000 : 5_000);
}

/** @param {number} id */
const dismiss = (id) => (notes.value = notes.value.filter((each) => each.id !== id));

/** Do it; what goes wrong is said. @param {() => Promise<unknown>} act */
export async function attempt(act) {
	try {
		await act();
		return true;
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		note(wordsOf(error), true);
		return false;
	}
}

export const Notes = () => html`<div class="notes" role="region" aria-label=${t("notes.label")}>
	${notes.value.map(
		(each) => html`<div key=${each.id} class=${each.isBad ? "note bad" : "note"} role=${each.isBad ? "alert" : undefined}>
			<span>${each.text}</span><${IconButton} icon="close" label=${t("dismiss")} onClick=${() => dismiss(each.id)} />
		</div>`,
	)}
</div>`;

// -- Dialogs --

/**
 * A modal dialog; the browser keeps focus in it and gives it back to where it came from.
 * @param {{ title: string, onClose: () => void, class?: string, children?: any, isStubborn?: boolean }} props
 */
export function Dialog({ title, onClose, class: name = "", children, isStubborn = false }) {
	const id = useId();
	const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
	useLayoutEffect(() => {
		const dialog = /** @type {HTMLDialogElement} */ (ref.current);
		const opener = document.activeElement;
		dialog.showModal();
		// Whoever opened a form wants to write; a drawn keyboard would cover it.
		if (!TOUCH.matches) /** @type {HTMLElement | null} */ (dialog.querySelector("form :is(input:not([type=checkbox], [type=file]), textarea, select)"))?.focus();
		return () => {
			dialog.close();
			if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
		};
	}, []);
	/** @param {Event} event */
	const onCancel = (event) => {
		event.preventDefault();
		if (!isStubborn) onClose();
	};
	/** @param {MouseEvent} event */
	const onClick = (event) => event.target === ref.current && !isStubborn && onClose();
	return html`<dialog ref=${ref} class=${`dialog ${name}`} aria-labelledby=${id} onCancel=${onCancel} onClick=${onClick}>
		<div class="dialog-body">
			<header>
				<h2 id=${id} tabindex="-1">${title}</h2>
				${!isStubborn && html`<${IconButton} icon="close" label=${t("close")} onClick=${onClose} />`}
			</header>
			${children}
		</div>
	</dialog>`;
}

/** Whoever was at what has just disappeared goes on at the page's beginning. */
export const keepFocus = () =>
	requestAnimationFrame(() => document.activeElement === document.body && document.getElementById("content")?.focus({ preventScroll: true }));

/** @param {{ title: string, text: string, yes: string, onYes: () => unknown, onClose: () => void, isDangerous?: boolean }} props */
export const Confirm = ({ title, text, yes, onYes, onClose, isDangerous }) => html`<${Dialog} title=${title} onClose=${onClose} class="small">
	<p>${text}</p>
	<div class="actions">
		<${Button} onClick=${onClose}>${t("cancel")}<//>
		<${Button} kind=${isDangerous ? "danger" : "primary"} onClick=${() => (onClose(), Promise.resolve(onYes()).then(keepFocus))}>${yes}<//>
	</div>
<//>`;

// -- Writing --

/** Where the keyboard is drawn on the screen, over what is to be read, and has no Shift+Enter. */
const TOUCH = matchMedia("(hover: none) and (pointer: coarse)");
export const hasDrawnKeyboard = () => TOUCH.matches;

/** Ready to write again; a drawn keyboard comes only to whoever asks for it. */
export const focusComposer = () => document.getElementById(TOUCH.matches ? "content" : "composer")?.focus({ preventScroll: true });

/** Whether this key sends what is written. On a drawn keyboard Enter is a new line, since it has no other. @param {KeyboardEvent} event */
export const isSending = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && (!TOUCH.matches || event.ctrlKey || event.metaKey);

// -- Menus --

/**
 * A button that opens a list of commands; `children` are what it shows, and its name. Arrow keys, Home, End, Escape and letters work as in other menus.
 * @param {{ label: string, icon?: string, children?: any, items: ({ label: string, icon?: string, onSelect: () => void, isDangerous?: boolean, isChecked?: boolean } | null)[], class?: string }} props
 */
export function Menu({ label, icon = "more", children, items, class: name = "" }) {
	const [isOpen, setOpen] = useState(false);
	const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
	const list = useRef(/** @type {HTMLElement | null} */ (null));
	const shown = items.filter((each) => each !== null);
	const entries = () => /** @type {HTMLElement[]} */ ([...(list.current?.querySelectorAll("[role^=menuitem]") ?? [])]);
	usePopup(isOpen, setOpen, button, list);
	useLayoutEffect(() => {
		if (isOpen) entries()[0]?.focus({ preventScroll: true });
	}, [isOpen]);
	const close = () => {
		setOpen(false);
		button.current?.focus();
	};
	/** @param {KeyboardEvent} event */
	const onKeyDown = (event) => {
		const all = entries();
		const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
		const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
		if (to !== undefined) {
			event.preventDefault();
			all[(to + all.length) % all.length]?.focus();
		} else if (event.key === "Escape") {
			event.preventDefault();
			event.stopPropagation();
			close();
		} else if (event.key === "Tab") setOpen(false);
		else if (event.key.length === 1) all.find((each) => each.textContent?.trim().toLowerCase().startsWith(event.key.toLowerCase()))?.focus();
	};
	const buttonProps = { type: "button", "aria-haspopup": "menu", "aria-expanded": isOpen, ref: button, onClick: () => setOpen(!isOpen) };
	return html`<div class=${`menu ${name}`}>
		${
			children
				? html`<button ...${buttonProps} class="menu-button">${children}</button>`
				: html`<button ...${buttonProps} class="icon-button" aria-label=${label} title=${label}><${Icon} name=${icon} /></button>`
		}
		${
			isOpen &&
			html`<div class="menu-list" role="menu" aria-label=${label} ref=${list} onKeyDown=${onKeyDown}>
				${shown.map(
					(item) => html`<button
						type="button"
						role=${item.isChecked === undefined ? "menuitem" : "menuitemradio"}
						aria-checked=${item.isChecked}
						tabindex="-1"
						class=${item.isDangerous ? "danger" : ""}
						onClick=${() => (close(), item.onSelect())}
					>
						<${Icon} name=${item.isChecked ? "check" : (item.icon ?? "")} /><span>${item.label}</span>
					</button>`,
				)}
			</div>`
		}
	</div>`;
}

/**
 * Put what a button opens beside it, and close it when the person does something elsewhere.
 * @param {boolean} isOpen
 * @param {(isOpen: boolean) => void} setOpen
 * @param {{ current: HTMLElement | null }} button
 * @param {{ current: HTMLElement | null }} popup
 */
export function usePopup(isOpen, setOpen, button, popup) {
	useLayoutEffect(() => {
		if (!isOpen) return;
		place(/** @type {HTMLElement} */ (popup.current), /** @type {HTMLElement} */ (button.current));
		/** @param {Event} event */
		const away = (event) => {
			if (event.target instanceof Node && !popup.current?.contains(event.target) && !button.current?.contains(event.target)) setOpen(false);
		};
		const resized = () => setOpen(false);
		document.addEventListener("pointerdown", away);
		addEventListener("resize", resized);
		return () => {
			document.removeEventListener("pointerdown", away);
			removeEventListener("resize", resized);
		};
	}, [isOpen]);
}

/** Put a list beside its button, inside of the window. @param {HTMLElement} list @param {HTMLElement} button */
function place(list, button) {
	const [at, size] = [button.getBoundingClientRect(), list.getBoundingClientRect()];
	const isBelow = at.bottom + size.height + 8 < innerHeight || at.top < size.height;
	list.style.top = `${Math.max(8, isBelow ? at.bottom + 4 : at.top - size.height - 4)}px`;
	const left = document.dir === "rtl" ? at.left : at.right - size.width;
	list.style.left = `${Math.max(8, Math.min(at.left < size.width ? at.left : left, innerWidth - size.width - 8))}px`;
}

/** @param {string} text */
export async function copyText(text) {
	const isCopied = await (navigator.clipboard?.writeText(text).then(() => true, () => false) ?? false);
	if (isCopied || copyByCommand(text)) note(t("copied"));
	else note(t("copyFailed"), true);
}

/** The older way, the only one for pages without https, and where the newer one is not permitted. @param {string} text */
function copyByCommand(text) {
	const before = document.activeElement;
	const box = document.createElement("textarea");
	box.value = text;
	(document.querySelector("dialog[open]") ?? document.body).append(box);
	box.select();
	const isCopied = document.execCommand("copy");
	box.remove();
	if (before instanceof HTMLElement) before.focus({ preventScroll: true });
	return isCopied;
}

/** Put this into the window's title while the page is shown. @param {string} title */
export function useTitle(title) {
	useEffect(() => {
		document.title = title ? `${title} · ${config.name}` : config.name;
	}, [title]);
}
