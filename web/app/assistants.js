/* The assistants that the person may ask, by name. */
import { signal } from "@preact/signals";
import { get } from "./api.js";
import { keep, recall } from "./storage.js";

/** @type {import("@preact/signals").Signal<import("./api.js").Assistant[]>} */
export const assistants = signal([]);
export const areLoaded = signal(false);

export async function loadAssistants() {
	/** @type {import("./api.js").Assistant[]} */
	const found = [];
	for (let path = "assistants/?limit=200"; path; ) {
		const page = await get(path);
		found.push(...page.results);
		path = page.next;
	}
	assistants.value = found.sort((a, b) => a.name.localeCompare(b.name));
	areLoaded.value = true;
}

/** @param {string | null | undefined} id */
export const assistantOf = (id) => assistants.value.find((each) => each.id === id);

/** Whom a new chat asks: the one that was chosen last. */
export const usual = () => assistantOf(recall("assistant", "")) ?? assistants.value[0];
/** @param {string} id */
export const makeUsual = (id) => keep("assistant", id);
