/* Which page is shown: addresses of the browser's history, links followed without loading anew. */
import { computed, signal } from "@preact/signals";

/** Every address of the page; main.js names them, since the pages behind them use the router. @type {import("@preact/signals").Signal<import("./routes.js").Route[]>} */
export const routes = signal([]);
const place = signal(location.pathname + location.search);
/** Counts navigations by the person, so that the page knows when to move focus. */
export const visits = signal(0);

/** @param {string} path @param {string} pattern */
function match(path, pattern) {
	const [given, wanted] = [path, pattern].map((each) => each.replace(/\/$/, "").split("/"));
	if (given.length !== wanted.length) return null;
	/** @type {Record<string, string>} */
	const params = {};
	for (const [i, part] of wanted.entries()) {
		if (part.startsWith(":")) params[part.slice(1)] = decodeURIComponent(given[i]);
		else if (part !== given[i]) return null;
	}
	return params;
}

export const current = computed(() => {
	const { pathname, searchParams } = new URL(place.value, location.origin);
	for (const route of routes.value) {
		const params = match(pathname, route.path);
		if (params) return { route, params, query: searchParams, path: pathname };
	}
	return { route: null, params: /** @type {Record<string, string>} */ ({}), query: searchParams, path: pathname };
});

/** @param {string} to @param {{ replace?: boolean, isQuiet?: boolean }} [how] isQuiet: focus stays where it is */
export function navigate(to, { replace = false, isQuiet = false } = {}) {
	if (to !== place.value) {
		if (!replace) history.replaceState({ top: content()?.scrollTop }, "");
		history[replace ? "replaceState" : "pushState"](null, "", to);
	}
	place.value = to;
	if (!isQuiet) visits.value++;
}

addEventListener("popstate", ({ state }) => {
	place.value = location.pathname + location.search;
	visits.value++;
	if (state?.top) goBackTo(state.top);
});

const content = () => document.getElementById("content");
const PATIENCE_MS = 3_000;

/** To where the page was when it was left, once it is long enough again, unless the person goes elsewhere before. @param {number} top */
function goBackTo(top) {
	const until = performance.now() + PATIENCE_MS;
	const moved = new AbortController();
	for (const name of ["wheel", "touchstart", "keydown", "pointerdown"]) addEventListener(name, () => moved.abort(), { once: true, signal: moved.signal });
	const look = () => {
		const page = content();
		if (moved.signal.aborted || performance.now() > until) return moved.abort();
		if (!page || page.scrollHeight - page.clientHeight < top) return requestAnimationFrame(look);
		page.scrollTop = top;
		moved.abort();
	};
	requestAnimationFrame(look);
}

/** Links of this page are followed in place; those with a modifier, a target or a download as browsers do. */
document.addEventListener("click", (event) => {
	if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
	const link = event.target instanceof Element ? event.target.closest("a") : null;
	if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
	const to = new URL(link.href);
	if (!routes.value.some((route) => match(to.pathname, route.path))) return;
	event.preventDefault();
	navigate(to.pathname + to.search);
});
