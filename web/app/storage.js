/* What this browser keeps. Where it keeps nothing (private windows, full disks), the page forgets at a reload. */

const PREFIX = "amber.";
/** What the browser did not take, by name. @type {Map<string, any>} */
const untaken = new Map();

/**
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @returns {T}
 */
export function recall(name, otherwise) {
	if (untaken.has(name)) return untaken.get(name);
	try {
		const text = localStorage.getItem(PREFIX + name);
		return text === null ? otherwise : JSON.parse(text);
	} catch {
		return otherwise;
	}
}

/**
 * @param {string} name
 * @param {unknown} value null or undefined: forget it
 */
export function keep(name, value) {
	untaken.delete(name);
	try {
		localStorage.removeItem(PREFIX + name); // or what was kept before would come back
		if (value !== null && value !== undefined) localStorage.setItem(PREFIX + name, JSON.stringify(value));
	} catch {
		if (value !== null && value !== undefined) untaken.set(name, value);
	}
}

/** Forget all but how the page looks: what a person wrote stays not behind for the next one. */
export function forgetPerson() {
	untaken.clear();
	try {
		for (const name of Object.keys(localStorage))
			if (name.startsWith(PREFIX) && !["amber.theme", "amber.locale"].includes(name)) localStorage.removeItem(name);
	} catch {
		// There is no storage.
	}
}
