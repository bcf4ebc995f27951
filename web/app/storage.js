/* What this browser keeps. Where it keeps nothing (private windows, full disks), the page forgets at a reload. */

const PREFIX = "amber.";

/**
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @returns {T}
 */
export function recall(name, otherwise) {
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
	try {
		if (value === null || value === undefined) localStorage.removeItem(PREFIX + name);
		else localStorage.setItem(PREFIX + name, JSON.stringify(value));
	} catch {
		// There is no storage.
	}
}

/** Forget all but how the page looks: what a person wrote stays not behind for the next one. */
export function forgetPerson() {
	try {
		for (const name of Object.keys(localStorage))
			if (name.startsWith(PREFIX) && !["amber.theme", "amber.locale"].includes(name)) localStorage.removeItem(name);
	} catch {
		// There is no storage.
	}
}
