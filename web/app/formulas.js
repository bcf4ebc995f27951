/* Formulas, by KaTeX, which is loaded with its style sheet when the first one is shown. */
import { katexStyle } from "./config.js";

/** @type {Promise<any> | null} */
let loading = null;

function loadKatex() {
	loading ??= (async () => {
		const style = document.createElement("link");
		style.rel = "stylesheet";
		style.href = katexStyle;
		document.head.append(style);
		await import("../vendor/katex/katex.js");
		return /** @type {any} */ (globalThis).katex;
	})();
	return loading;
}

/** Draw the formulas in this element; what cannot be read stays as it was written. @param {Element} place */
export async function drawFormulas(place) {
	const katex = await loadKatex();
	for (const element of /** @type {NodeListOf<HTMLElement>} */ (place.querySelectorAll(".math:not([data-drawn])"))) {
		const source = element.textContent ?? "";
		element.dataset.drawn = "1";
		try {
			katex.render(source, element, { displayMode: Boolean(element.dataset.display), trust: false, maxSize: 20, maxExpand: 200, strict: "ignore" });
		} catch {
			element.textContent = source;
			element.classList.add("unreadable");
		}
	}
}
