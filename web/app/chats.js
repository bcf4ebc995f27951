/* The person's chats, newest first: pages, search, and every change of one. */
import { computed, signal } from "@preact/signals";
import { get, patch, post, remove } from "./api.js";
import { t } from "./i18n.js";
import { plainText } from "./plain-text.js";
import { announceChange } from "./tabs.js";

/** @typedef {import("./api.js").Chat} Chat */
/** @typedef {{ chat: { id: string, name: string }, message: import("./api.js").Message }} Found */

/** @type {import("@preact/signals").Signal<Map<string, Chat>>} */
const known = signal(new Map());
/** @type {import("@preact/signals").Signal<string | null>} */
const older = signal(null);
/** @type {import("@preact/signals").Signal<"loading" | "ready" | "failed">} */
export const listState = signal("loading");
export const showsArchived = signal(false);

const byDate = (/** @type {Chat} */ a, /** @type {Chat} */ b) => b.updated_at.localeCompare(a.updated_at);
export const chats = computed(() =>
	[...known.value.values()].filter((chat) => Boolean(chat.archived) === showsArchived.value).sort(byDate),
);
export const hasOlder = computed(() => older.value !== null);
/** A chat's name for people: it may be the begin of a question in Markdown. @param {{ name: string }} chat */
export const nameOf = ({ name }) => plainText(name) || t("chats.unnamed");

/** @param {string} id */
export const chatOf = (id) => known.value.get(id);

/** @param {Chat[]} changed */
function take(changed) {
	const next = new Map(known.value);
	for (const chat of changed) next.set(chat.id, chat);
	known.value = next;
}

const path = () => `chats/?limit=50&order=activity&archived=${showsArchived.value}`;

/** The newest page, and all that are pinned, however old. */
async function newest() {
	const [page, pinned] = await Promise.all([get(path()), get("chats/?limit=200&pinned=true")]);
	return { page, rows: [...page.results, ...pinned.results] };
}

export async function loadChats() {
	try {
		const { page, rows } = await newest();
		take(rows); // beside the chat that is open, which may be older than all of these
		older.value = page.next;
		listState.value = "ready";
	} catch (error) {
		if (listState.value === "loading") listState.value = "failed";
		throw error;
	}
}

/** @type {Promise<void> | null} */
let loadingOlder = null;

export async function loadOlder() {
	if (older.value) loadingOlder ??= loadPage(older.value).finally(() => (loadingOlder = null));
	await loadingOlder;
}

/** @param {string} address */
async function loadPage(address) {
	const page = await get(address);
	if (older.value !== address) return; // another list is shown meanwhile
	older.value = page.next;
	take(page.results);
}

/** Look for what is new, without forgetting the older pages and the other list. What is gone from the newest page goes. */
export async function refreshChats() {
	const before = known.value;
	const { page, rows } = await newest();
	const oldest = page.results.at(-1)?.updated_at ?? "";
	// What came, changed or went while this was read is newer than what was read.
	const isNewer = (/** @type {string} */ id) => known.value.get(id) !== before.get(id);
	const kept = new Map([...known.value].filter(([id, chat]) => isNewer(id) || Boolean(chat.archived) !== showsArchived.value || (page.next && chat.updated_at < oldest)));
	for (const chat of rows) if (!isNewer(chat.id)) kept.set(chat.id, chat);
	known.value = kept;
	if (!page.next) older.value = null;
}

/** @param {string} id */
export function dropChat(id) {
	const next = new Map(known.value);
	next.delete(id);
	known.value = next;
}

/** @param {Chat} chat */
export function noteChat(chat) {
	take([chat]);
}

/** Ask a question in a new chat, which is there only if the question is taken. @param {string} assistantId @param {{ content: string, file_ids: string[] }} question @param {string} key of idempotency @returns {Promise<Chat>} */
export async function createChat(assistantId, question, key) {
	const chat = await post("chats/", { assistant_id: assistantId, question }, { key });
	take([chat]);
	announceChange("chats");
	return chat;
}

/** @param {string} id @param {Partial<Chat>} fields */
export async function changeChat(id, fields) {
	const chat = await patch(`chats/${id}/`, fields);
	take([chat]);
	announceChange("chats", id);
	return chat;
}

/** @param {string} id */
export async function deleteChat(id) {
	await remove(`chats/${id}/`);
	dropChat(id);
	announceChange("chats", id);
}

/** @param {string} words @param {AbortSignal} signal @returns {Promise<{ named: Chat[], said: Found[] }>} */
export async function searchChats(words, signal) {
	const q = encodeURIComponent(words);
	const [named, said] = await Promise.all([
		get(`chats/?limit=20&archived=all&q=${q}`, { signal }),
		get(`chats/search/?limit=30&q=${q}`, { signal }),
	]);
	return { named: named.results, said: said.results };
}
