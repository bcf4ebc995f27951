/* Keyboard shortcuts: one list, which the help sheet shows. None is a single letter while somebody writes. */

/** @typedef {{ keys: string, label: import("./i18n.js").Key, act: () => void }} Shortcut */

/** @type {Map<string, Shortcut>} */
const active = new Map();

const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);

/** The keys as they are printed on this machine's keyboard. @param {string} keys */
export const printed = (keys) => keys.split("+").map((key) => (key === "Mod" ? (isMac ? "⌘" : "Ctrl") : key === "Shift" && isMac ? "⇧" : key));

/** @param {Shortcut} shortcut @returns {() => void} takes it back */
export function addShortcut(shortcut) {
	active.set(shortcut.keys, shortcut);
	return () => {
		if (active.get(shortcut.keys) === shortcut) active.delete(shortcut.keys);
	};
}

export const shortcuts = () => [...active.values()];

/** @param {KeyboardEvent} event */
function keysOf(event) {
	const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
	return [event.ctrlKey || event.metaKey ? "Mod" : "", event.shiftKey && (key.length > 1 || /[A-Z]/.test(key)) ? "Shift" : "", key].filter(Boolean).join("+");
}

document.addEventListener("keydown", (event) => {
	if (event.isComposing || event.altKey) return;
	const found = active.get(keysOf(event));
	if (!found) return;
	const isWriting = event.target instanceof HTMLElement && Boolean(event.target.closest("input, textarea, select, [contenteditable]"));
	if ((isWriting && !found.keys.startsWith("Mod")) || (document.querySelector("dialog[open]") && found.keys !== "Mod+/")) return;
	event.preventDefault();
	found.act();
});
