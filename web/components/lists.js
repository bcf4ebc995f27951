/* Lists that come in pages, from the REST API: loaded, shown, loaded on; and forms for a row. */
import { useCallback, useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { attempt, Button, Failure, fieldWords, Waiting } from "./ui.js";

/**
 * The rows at this address, so many of them if there are, and the address of those that follow.
 * @param {string} path @param {number} count
 */
async function readRows(path, count) {
	let page = await get(path);
	const rows = [...page.results];
	while (page.next && rows.length < count) {
		page = await get(page.next);
		rows.push(...page.results);
	}
	return { rows, next: page.next };
}

/**
 * The rows at this address; `rows` is null until they came. `refresh` reads as many anew as were loaded.
 * @param {string | null} path null: nothing yet
 * @param {number} least how many to load at first, if there are; at least a page
 */
export function useList(path, least = 1) {
	const [rows, setRows] = useState(/** @type {any[] | null} */ (null));
	const [next, setNext] = useState(/** @type {string | null} */ (null));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const shown = useRef(path);
	const count = useRef(least);
	const refresh = useCallback(async () => {
		if (path === null) return;
		try {
			const wanted = count.current;
			const read = await readRows(path, wanted);
			if (shown.current !== path || count.current !== wanted) return;
			setRows(read.rows);
			setNext(read.next);
			setError(null);
		} catch (why) {
			if (shown.current === path) setError(why);
		}
	}, [path]);
	useEffect(() => {
		shown.current = path;
		count.current = least;
		setRows(null);
		refresh();
	}, [path]);
	const more = () =>
		attempt(async () => {
			const page = await get(/** @type {string} */ (next));
			if (shown.current !== path) return;
			const all = [...(rows ?? []), ...page.results];
			count.current = all.length;
			setRows(all);
			setNext(page.next);
		});
	return { rows, error, refresh, more: next ? more : null };
}

/**
 * What stands for a list that is not there yet, failed or is empty; else its rows, and a button for more.
 * @param {{ list: ReturnType<typeof useList>, empty: any, children: any }} props
 */
export function Listed({ list, empty, children }) {
	if (list.error && !list.rows) return html`<${Failure} error=${list.error} onAgain=${list.refresh} />`;
	if (!list.rows) return html`<${Waiting} />`;
	if (!list.rows.length) return html`<p class="dim nothing">${empty}</p>`;
	return html`${children}${list.more && html`<p class="more-rows"><${Button} onClick=${list.more}>${t("more")}<//></p>`}`;
}

/** The row at this address. @param {string | null} path */
export function useRow(path) {
	const [row, setRow] = useState(/** @type {any} */ (null));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const refresh = useCallback(async () => {
		if (path === null) return;
		try {
			setRow(await get(path));
			setError(null);
		} catch (why) {
			setError(why);
		}
	}, [path]);
	useEffect(() => {
		setRow(null);
		refresh();
	}, [path]);
	return { row, error, refresh, setRow };
}

/** Call this again and again while it is wanted and the page is looked at. @param {() => void} act @param {number} ms 0: not at all */
export function useEvery(act, ms) {
	const latest = useRef(act);
	latest.current = act;
	useEffect(() => {
		if (!ms) return undefined;
		const timer = setInterval(() => document.hidden || latest.current(), ms);
		return () => clearInterval(timer);
	}, [ms]);
}

/** A labelled choice among few. @param {{ label: string, value: string, onValue: (value: any) => void, options: any[][], [name: string]: any }} props */
export function Choice({ label, value, onValue, options, ...rest }) {
	const id = useId();
	return html`<div class="field">
		<label for=${id}>${label}</label>
		<select id=${id} value=${value} onChange=${(/** @type {any} */ event) => onValue(event.currentTarget.value)} ...${rest}>
			${options.map(([name, words]) => html`<option key=${name} value=${name} selected=${name === value}>${words}</option>`)}
		</select>
	</div>`;
}

/** A box to tick. @param {{ label: string, checked: boolean, onChecked: (checked: boolean) => void, hint?: string, [name: string]: any }} props */
export function Tick({ label, checked, onChecked, hint, ...rest }) {
	return html`<label class="choice tick">
		<input type="checkbox" checked=${checked} onChange=${(/** @type {any} */ event) => onChecked(event.currentTarget.checked)} ...${rest} />
		<span>${label}${hint && html`<span class="hint">${hint}</span>`}</span>
	</label>`;
}

/**
 * The words of the fields that a refusal complains about; the first of them gets focus, wherever in the form it is.
 * `rest` is the error, unless the fields that were asked for say all of it.
 * @param {unknown} error
 */
export function useComplaints(error) {
	useLayoutEffect(() => {
		if (error) /** @type {HTMLElement | null} */ ((document.querySelector("dialog[open]") ?? document).querySelector("[aria-invalid=true]"))?.focus();
	}, [error]);
	const fields = error instanceof ApiError && error.code === "invalid" ? error.fields : {};
	const told = new Set();
	/** @param {string} name */
	const said = (name) => (told.add(name), fields[name] ? fieldWords(/** @type {ApiError} */ (error), name) : undefined);
	const rest = () => (Object.keys(fields).length && Object.keys(fields).every((name) => told.has(name)) ? null : error);
	return Object.assign(said, { rest });
}

/** A form whose values are kept together, saved by one act. @param {Record<string, any>} first @param {(given: any) => Promise<unknown>} act */
export function useForm(first, act) {
	const [given, setGiven] = useState(first);
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const [isBusy, setBusy] = useState(false);
	/** @param {string} name */
	const set = (name) => (/** @type {any} */ value) => setGiven({ ...given, [name]: value });
	/** @param {Event} event */
	const onSubmit = async (event) => {
		event.preventDefault();
		if (isBusy) return;
		setBusy(true);
		try {
			setError(null);
			await act(given);
		} catch (why) {
			setError(why);
		} finally {
			setBusy(false);
		}
	};
	const said = useComplaints(error);
	/** @param {string} name */
	const field = (name) => ({ value: given[name] ?? "", onValue: set(name), error: said(name) });
	return { given, setGiven, set, field, rest: said.rest, onSubmit, isBusy };
}
