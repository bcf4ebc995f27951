/*
 * What happens elsewhere, in other tabs and on other devices: the server tells it in one stream. One tab of a
 * browser listens and tells the others, since browsers open few connections at once; if it is closed, another
 * takes its place. Where browsers cannot agree on one (pages without https), the page asks now and then.
 */
import { eventsOf } from "../shared/events.js";
import { ApiError, get, stream } from "./api.js";
import { dropChat, noteChat, refreshChats } from "./chats.js";
import { openConversation, shown } from "./conversation.js";
import { onChange } from "./tabs.js";

/** @typedef {{ event: "ready" | "chats.changed" | "chat.changed" | "chat.deleted", chat_id?: string, turn_id?: string, status?: string }} Change */

const ASK_EVERY_MS = 8_000;
const SILENT_MS = 40_000; // a heartbeat every 15 s
const GATHER_MS = 120;

/** @type {Map<string, ReturnType<typeof setTimeout>>} */
const soon = new Map();

/** Do it once for all that asks for it within a moment; without a network the next `ready` makes up for it. @param {string} name @param {() => Promise<unknown>} act */
function gather(name, act) {
	clearTimeout(soon.get(name));
	soon.set(
		name,
		setTimeout(() => {
			soon.delete(name);
			act().catch((error) => {
				if (!(error instanceof ApiError)) throw error;
			});
		}, GATHER_MS),
	);
}

const lookAtAll = () => gather("all", () => Promise.all([refreshChats(), openConversation(shown.value)?.refresh()]));

/** @param {string} id */
const lookAt = (id) =>
	gather(id, async () => {
		const conversation = openConversation(id);
		if (conversation && !conversation.isBusy.peek()) await conversation.refresh();
		else noteChat(await get(`chats/${id}/`));
	});

/** @param {Change} change */
function hear(change) {
	if (change.event === "chat.deleted" && change.chat_id) dropChat(change.chat_id);
	else if (change.event === "chat.changed" && change.chat_id) lookAt(change.chat_id);
	else lookAtAll();
}

/** Listen until told to stop, over as many connections as it takes. @param {(change: Change) => void} tell @param {AbortSignal} stop */
async function listen(tell, stop) {
	for (let failures = 0; !stop.aborted; failures++) {
		const connection = new AbortController();
		const end = () => connection.abort();
		stop.addEventListener("abort", end);
		/** @type {ReturnType<typeof setTimeout> | undefined} */
		let timer;
		const sign = () => {
			clearTimeout(timer);
			timer = setTimeout(end, SILENT_MS);
		};
		try {
			sign();
			for await (const change of eventsOf(await stream("events/", { headers: {}, signal: connection.signal }), sign)) {
				failures = 0;
				tell(change);
			}
		} catch {
			// The connection was cut or refused: the next one begins with `ready`, which makes up for the gap.
		} finally {
			clearTimeout(timer);
			stop.removeEventListener("abort", end);
			end();
		}
		await new Promise((wake) => {
			setTimeout(wake, Math.min(500 * 2 ** failures, 10_000));
			addEventListener("online", () => wake(null), { once: true });
			stop.addEventListener("abort", () => wake(null), { once: true });
		});
	}
}

/** Begin to hear. @returns {() => void} ends it */
export function startChanges() {
	const stop = new AbortController();
	const endTabs = onChange((what, id) => {
		if (what === "chats") lookAtAll();
		if (what === "chat") lookAt(id);
	});
	const back = () => !document.hidden && lookAtAll();
	addEventListener("online", back);
	if (navigator.locks) {
		const channel = new BroadcastChannel("amber.changes");
		channel.onmessage = ({ data }) => hear(data);
		/** @param {Change} change */
		const tell = (change) => {
			channel.postMessage(change);
			hear(change);
		};
		navigator.locks.request("amber.changes", { signal: stop.signal }, () => listen(tell, stop.signal)).catch((error) => {
			if (error.name !== "AbortError") throw error;
		});
		stop.signal.addEventListener("abort", () => channel.close());
	} else {
		const timer = setInterval(back, ASK_EVERY_MS);
		stop.signal.addEventListener("abort", () => clearInterval(timer));
	}
	return () => {
		stop.abort();
		endTabs();
		removeEventListener("online", back);
	};
}
