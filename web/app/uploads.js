/* Many files on their way into a library: a few at a time, each with its progress, failures to be tried again. */
import { signal } from "@preact/signals";
import { ApiError, upload } from "./api.js";

/** In the order in which a document goes through them. */
export const STAGES = ["stored", "parsed", "chunked", "embedded", "ready"];

const AT_ONCE = 3;

/**
 * @typedef {object} Sent
 * @property {number} id
 * @property {string} libraryId
 * @property {File} file
 * @property {string} path inside of its folder; empty for a single file
 * @property {"waiting" | "sending" | "done" | "failed"} state
 * @property {number} share of it that was sent, from 0 to 1
 * @property {unknown} error
 */

/** @type {import("@preact/signals").Signal<Sent[]>} */
export const uploads = signal([]);
let serial = 0;
let pausedUntil = 0;

/** @param {number} id @param {Partial<Sent>} changes */
const change = (id, changes) => (uploads.value = uploads.value.map((each) => (each.id === id ? { ...each, ...changes } : each)));

/** @param {string} libraryId @param {{ file: File, path: string }[]} files */
export function sendFiles(libraryId, files) {
	const added = files.map(({ file, path }) => ({ id: ++serial, libraryId, file, path, state: /** @type {const} */ ("waiting"), share: 0, error: null }));
	uploads.value = [...uploads.value.filter((each) => each.state !== "done" || each.libraryId === libraryId), ...added];
	sendMore();
}

/** @param {Sent} sent */
export function sendAgain(sent) {
	change(sent.id, { state: "waiting", share: 0, error: null });
	sendMore();
}

/** Forget what was sent, and what failed. @param {string} libraryId */
export const clearUploads = (libraryId) => (uploads.value = uploads.value.filter((each) => each.libraryId !== libraryId || each.state === "waiting" || each.state === "sending"));

function sendMore() {
	const pause = pausedUntil - Date.now();
	if (pause > 0) return void setTimeout(sendMore, pause);
	const busy = uploads.value.filter((each) => each.state === "sending").length;
	for (const next of uploads.value.filter((each) => each.state === "waiting").slice(0, AT_ONCE - busy)) sendOne(next);
}

/** @param {Sent} sent */
async function sendOne(sent) {
	change(sent.id, { state: "sending" });
	/** @type {Record<string, string>} */
	const fields = sent.path ? { path: sent.path } : {};
	try {
		await upload(sent.file, sent.file.name, (share) => change(sent.id, { share }), undefined, `libraries/${sent.libraryId}/documents/`, fields);
		change(sent.id, { state: "done", share: 1 });
	} catch (error) {
		// Asked to go slower: everything waits, nothing fails.
		if (error instanceof ApiError && error.status === 429 && error.code === "rate_limited") {
			pausedUntil = Date.now() + 1_000 * (error.retryAfter || 1);
			change(sent.id, { state: "waiting", share: 0 });
		} else change(sent.id, { state: "failed", error });
	}
	sendMore();
}

/** The files of what was dropped, those in folders with their paths. @param {DataTransfer} dropped */
export async function filesOf(dropped) {
	const entries = [...dropped.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
	if (!entries.length) return [...dropped.files].map((file) => ({ file, path: "" }));
	/** @type {{ file: File, path: string }[]} */
	const found = [];
	/** @param {any} entry @returns {Promise<void>} */
	const walk = async (entry) => {
		if (entry.isFile) {
			const file = await new Promise((done, fail) => entry.file(done, fail));
			const path = entry.fullPath.replace(/^\//, "");
			found.push({ file, path: path.includes("/") ? path : "" });
			return;
		}
		const reader = entry.createReader();
		for (;;) {
			/** @type {any[]} */
			const some = await new Promise((done, fail) => reader.readEntries(done, fail));
			if (!some.length) return;
			for (const each of some) await walk(each);
		}
	};
	for (const entry of entries) await walk(entry);
	return found;
}
