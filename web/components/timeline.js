/*
 * The list of a conversation's entries, of any length: only what is near the window is drawn. Entries stand
 * in stretches; one that is far away is an empty space of the height that it had.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { memo } from "./memo.js";
import { IconButton } from "./ui.js";

const STRETCH = 12;
const GUESS_PIXELS = 180;
const NEAR_START_PIXELS = 1_500;
const NEAR_END_PIXELS = 80;

/**
 * The entry to go to, each object once: to the middle of the window, or with its top where that of another was, and
 * what of it gets focus.
 * @typedef {{ key: string, top?: number, focus?: string[] }} Target
 */

/**
 * @param {object} props
 * @param {{ key: string }[]} props.entries
 * @param {(entry: any) => any} props.draw must be the same function each time
 * @param {boolean} props.hasOlder
 * @param {() => void} props.onOlder
 * @param {string} props.id of the chat
 * @param {Target | null} [props.target]
 * @param {any} [props.children] what stands below the last entry
 */
export function Timeline({ entries, draw, hasOlder, onOlder, id, target, children }) {
	const scroller = useRef(/** @type {HTMLElement | null} */ (null));
	const content = useRef(/** @type {HTMLElement | null} */ (null));
	const isAtEnd = useRef(true);
	const lastTop = useRef(0);
	const [showsEnd, setShowsEnd] = useState(true);
	const anchor = useRef(/** @type {{ key: string, top: number } | null} */ (null));

	/** @type {{ key: string, entries: { key: string }[] }[]} */
	const stretches = stretchesOf(entries);
	const firstKey = entries[0]?.key;

	const toEnd = () => {
		const box = scroller.current;
		if (!box) return;
		box.scrollTop = box.scrollHeight;
		lastTop.current = box.scrollTop;
	};
	const goToEnd = () => {
		isAtEnd.current = true;
		setShowsEnd(true);
		toEnd();
		scroller.current?.focus({ preventScroll: true }); // the button goes
	};
	// What is put in above, or drawn there, must not move what is read; what the person scrolled meanwhile counts.
	const settle = () => {
		const box = scroller.current;
		if (!box) return;
		// A list that became shorter than where the window stood moves it, too: nobody scrolled.
		const isCutOff = lastTop.current > box.scrollHeight - box.clientHeight;
		const scrolled = isCutOff ? 0 : box.scrollTop - lastTop.current;
		const isScrolled = Math.abs(scrolled) > 2;
		if (isAtEnd.current && !isScrolled) return toEnd();
		const kept = anchor.current;
		const element = kept && box.querySelector(`[data-entry="${CSS.escape(kept.key)}"]`);
		if (element) box.scrollTop += element.getBoundingClientRect().top - kept.top + scrolled;
		lastTop.current = box.scrollTop;
		// Nothing is scrolled beyond the beginning: then what is read stands elsewhere from now on.
		const isKept = element && Math.abs(element.getBoundingClientRect().top - kept.top + scrolled) < 2;
		if (isScrolled || !isKept) remember(box);
		if (hasOlder && box.scrollTop < NEAR_START_PIXELS) onOlder();
	};
	const latest = useRef(settle);
	latest.current = settle;
	/** @param {HTMLElement} box */
	const remember = (box) => {
		isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PIXELS;
		setShowsEnd(isAtEnd.current);
		const top = box.getBoundingClientRect().top;
		const first = [...box.querySelectorAll("[data-entry]")].find((each) => each.getBoundingClientRect().bottom > top);
		anchor.current = first ? { key: first.getAttribute("data-entry") ?? "", top: first.getBoundingClientRect().top } : null;
	};
	useLayoutEffect(() => {
		isAtEnd.current = true;
		anchor.current = null;
		toEnd();
		const observer = new ResizeObserver(() => latest.current());
		if (content.current) observer.observe(content.current);
		if (scroller.current) observer.observe(scroller.current);
		return () => observer.disconnect();
	}, [id]);
	// A page that does not fill what is near cannot be scrolled to its beginning.
	useEffect(() => {
		if (scroller.current && hasOlder && scroller.current.scrollTop < NEAR_START_PIXELS) onOlder();
	}, [firstKey, hasOlder]);
	useLayoutEffect(() => {
		const box = scroller.current;
		const element = target && box?.querySelector(`[data-entry="${CSS.escape(target.key)}"]`);
		if (!element || !box) return;
		if (target.top === undefined) element.scrollIntoView({ block: "center" });
		else box.scrollTop += element.getBoundingClientRect().top - target.top;
		lastTop.current = box.scrollTop;
		remember(box);
		const place = target.focus?.map((each) => element.querySelector(each)).find(Boolean) ?? element.firstElementChild;
		/** @type {HTMLElement | null} */ (place)?.focus({ preventScroll: true });
	}, [target]);
	/** @param {KeyboardEvent} event */
	const onKeyDown = (event) => {
		if (event.target !== scroller.current || !["j", "k", "J", "K"].includes(event.key)) return;
		jump(/** @type {HTMLElement} */ (scroller.current), event.key.toLowerCase() === "j" ? 1 : -1);
	};
	return html`<div class="timeline-box">
		<div class="timeline" ref=${scroller} onScroll=${settle} onKeyDown=${onKeyDown} tabindex="0" role="log" aria-live="off" aria-label=${t("chat.log")}>
			<div class="timeline-content" ref=${content}>
				${hasOlder && html`<p class="older"><button type="button" class="link" onClick=${onOlder}>${t("chat.showOlder")}</button></p>`}
				${stretches.map((stretch) => html`<${Stretch} key=${stretch.key} entries=${stretch.entries} draw=${draw} root=${scroller} isKept=${stretch === stretches.at(-1) || stretch.entries.some((entry) => entry.key === target?.key)} />`)}
				${children}
			</div>
		</div>
		${!showsEnd && html`<${IconButton} class="to-end" icon="end" label=${t("chat.toEnd")} onClick=${goToEnd} />`}
	</div>`;
}

/**
 * Cut from the newest known entry backwards at entries whose key stays: a stretch is named by its last one.
 * @param {{ key: string }[]} entries
 */
function stretchesOf(entries) {
	/** @type {{ key: string, entries: { key: string }[] }[]} */
	const stretches = [];
	/** @type {{ key: string }[]} */
	let some = [];
	for (const entry of entries) {
		some.push(entry);
		if (endsStretch(entry.key)) {
			stretches.push({ key: entry.key, entries: some });
			some = [];
		}
	}
	if (some.length) stretches.push({ key: "end", entries: some });
	return stretches;
}

/** Whether a stretch ends with this entry depends on its key alone, so that no other entry moves the cuts. @param {string} key */
function endsStretch(key) {
	let sum = 0;
	for (let i = Math.max(0, key.length - 12); i < key.length; i++) sum = (sum * 31 + key.charCodeAt(i)) >>> 0;
	return sum % STRETCH === 0;
}

const Stretch = memo(
	/** @param {{ entries: { key: string }[], draw: (entry: any) => any, root: any, isKept: boolean }} props */
	function Stretch({ entries, draw, root, isKept }) {
		const ref = useRef(/** @type {HTMLElement | null} */ (null));
		const height = useRef(GUESS_PIXELS * entries.length);
		const [isNear, setNear] = useState(isKept);
		useEffect(() => {
			const element = /** @type {HTMLElement} */ (ref.current);
			const observer = new IntersectionObserver(
				([{ isIntersecting }]) => {
					if (!isIntersecting && element.childElementCount) height.current = element.offsetHeight;
					setNear(isIntersecting);
				},
				{ root: root.current, rootMargin: "1500px 0px" },
			);
			observer.observe(element);
			const all = () => setNear(true);
			addEventListener("beforeprint", all);
			return () => {
				observer.disconnect();
				removeEventListener("beforeprint", all);
			};
		}, []);
		return html`<div ref=${ref} class="stretch" style=${isNear || isKept ? {} : { height: `${height.current}px` }}>
			${(isNear || isKept) && entries.map((entry) => html`<div key=${entry.key} data-entry=${entry.key}>${draw(entry)}</div>`)}
		</div>`;
	},
);

/** Move focus to the entry before or after. @param {HTMLElement} box @param {number} by */
export function jump(box, by) {
	const all = /** @type {HTMLElement[]} */ ([...box.querySelectorAll("[data-entry] > [tabindex]")]);
	const focused = all.findIndex((each) => each.contains(document.activeElement));
	const to = focused < 0 ? (by < 0 ? all.length - 1 : 0) : Math.min(Math.max(focused + by, 0), all.length - 1);
	all[to]?.focus();
	all[to]?.scrollIntoView({ block: "nearest" });
}
