import { eventsOf } from "./events.js";

/** Events whose names begin as those that end a turn do. */
const GOES_ON = new Set(["turn.started", "turn.restarted", "turn.waiting", "turn.snapshot"]);
const SILENT_MS = 40_000; // a heartbeat every 15 s

/** Wait, or less if the network comes back meanwhile. @param {number} ms @returns {Promise<void>} */
const pause = (ms) =>
	new Promise((wake) => {
		setTimeout(wake, ms);
		addEventListener("online", () => wake(), { once: true });
	});

/**
 * Every event of a turn, in order, each once, over as many connections as it takes; the last one is returned.
 * Throws what `open` throws for a refusal (`status` from 400 to 499, but for 429).
 *
 * @param {(path: string, options: { headers: Record<string, string>, signal: AbortSignal }) => Promise<Response>} open
 * @param {string} turnId
 * @param {(event: any) => void} onEvent
 * @param {() => void} onLost
 * @returns {Promise<any>}
 */
export async function follow(open, turnId, onEvent, onLost) {
	for (let lastId = 0, failures = 0; ; ) {
		const connection = new AbortController();
		const end = () => connection.abort();
		/** @type {ReturnType<typeof setTimeout> | undefined} */
		let timer;
		const sign = () => {
			clearTimeout(timer);
			timer = setTimeout(end, SILENT_MS);
		};
		try {
			sign();
			/** @type {Record<string, string>} */
			const headers = lastId ? { "Last-Event-ID": String(lastId) } : {};
			const response = await open(`turns/${turnId}/events/`, { headers, signal: connection.signal });
			for await (const event of eventsOf(response, sign)) {
				[lastId, failures] = [event.seq || lastId, 0]; // a place in the queue has no number
				onEvent(event);
				if (/^turn/.test(event.event) && !GOES_ON.has(event.event)) return event;
			}
		} catch (/** @type {any} */ error) {
			if (error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
		} finally {
			clearTimeout(timer);
			end();
		}
		if (failures++) onLost();
		await pause(Math.min(250 * 2 ** failures, 8_000));
	}
}
