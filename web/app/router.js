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
	if (to !== place.value) history[replace ? "replaceState" : "pushState"](null, "", to);
	place.value = to;
	if (!isQuiet) visits.value++;
}

addEventListener("popstate", () => {
	place.value = location.pathname + location.search;
	visits.value++;
});

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
