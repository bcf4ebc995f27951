/* Tells this browser's other tabs at once what this one did, and hears what they did. */

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("amber");

/** @typedef {"session" | "chats" | "chat"} What */

/** @param {What} what @param {string} [id] */
export const announceChange = (what, id = "") => channel?.postMessage({ what, id });

/** @param {(what: What, id: string) => void} hear @returns {() => void} ends it */
export function onChange(hear) {
	/** @param {MessageEvent} event */
	const listen = ({ data }) => hear(data.what, data.id);
	channel?.addEventListener("message", listen);
	return () => channel?.removeEventListener("message", listen);
}
