/* Lists that come in pages, from the REST API, and single rows: loaded, shown, loaded on. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { attempt, Button, Failure, Waiting } from "./ui.js";

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
