/*
 * One chat as it is shown: the stored messages of its branch, and the turn that is being answered.
 *
 * Each chat has an object of its own, which goes on following its turn while another chat is shown. What is
 * shown of a turn is the fold of its events; when it has ended, the stored messages take its place.
 */
import { batch, computed, signal } from "@preact/signals";
import { fold } from "../shared/fold.js";
import { follow } from "../shared/follow.js";
import { announce } from "./announce.js";
import { ApiError, get, newKey, patch, post, put, streamUntil } from "./api.js";
import { chatOf, noteChat } from "./chats.js";
import { t } from "./i18n.js";
import { keep, recall } from "./storage.js";
import { announceChange } from "./tabs.js";

/** @typedef {import("./api.js").Message} Message */
/** @typedef {{ call_id: string, name: string, arguments: string, approved: boolean | null }} WaitingCall */
/** @typedef {{ code: string, message: string, retryable?: boolean }} TurnError */

/**
 * What is known of the turn under way.
 * @typedef {object} Live
 * @property {string} id
 * @property {string | null} questionId
 * @property {Message[]} messages
 * @property {Record<string, string>} text
 * @property {Record<string, string>} reasoning
 * @property {any[]} passages
 * @property {Map<string, { name: string, arguments: string, startedAt: number, step: number }>} calls that run now
 * @property {WaitingCall[]} waiting
 * @property {{ position: number, reason: string } | null} place in the queue, once the turn has waited for a while
 * @property {boolean} isLost
 * @property {boolean} isStopping
 */

/** A question that is on its way to the server. @typedef {{ key: string, content: string, assistantId: string | null, fileIds: string[], files: import("./api.js").StoredFile[], error: ApiError | null, refused?: { status: number, code: string, message: string, retryAfter: number } }} Pending */

const PAGE = 50;

export class Conversation {
	/** @param {string} id */
	constructor(id) {
		this.id = id;
		/** @type {import("@preact/signals").Signal<"loading" | "ready" | "missing" | "failed">} */
		this.state = signal("loading");
		this.messages = signal(/** @type {Message[]} */ ([]));
		this.previous = signal(/** @type {string | null} */ (null));
		/** @type {Promise<void> | null} */
		this.loadingOlder = null;
		this.live = signal(/** @type {Live | null} */ (null));
		this.pending = signal(/** @type {Pending | null} */ (null));
		/** How the last turn of the branch ended, if not well; with the code `cancelled` if it was stopped. */
		this.failure = signal(/** @type {(TurnError & { questionId: string | null }) | null} */ (null));
		this.isBusy = computed(() => this.live.value !== null || (this.pending.value !== null && !this.pending.value.error));
		/** The question is to be stopped as soon as the server has taken it. */
		this.isStopWanted = false;
		this.isBranching = false;
		/** @type {AbortController | null} */
		this.watching = null;
		/** @type {Live | null} */
		this.folded = null;
	}

	get chat() {
		return chatOf(this.id);
	}

	// -- Reading --

	/** Read what is stored, and follow what is being written. */
	async load() {
		try {
			const [chat, page] = await this.read();
			batch(() => {
				this.messages.value = page.results;
				this.previous.value = page.previous;
				this.state.value = "ready";
			});
			await this.findTurn(chat);
			this.sendAgainAfterReload();
		} catch (error) {
			if (!(error instanceof ApiError)) throw error;
			if (this.state.value !== "ready") this.state.value = error.status === 404 ? "missing" : "failed";
		}
	}

	/** Read the chat, which is noted, and its newest page. @returns {Promise<[import("./chats.js").Chat, import("./api.js").Page<Message>]>} */
	async read() {
		const [chat, page] = await Promise.all([get(`chats/${this.id}/`), this.readTail()]);
		noteChat(chat);
		return [chat, page];
	}

	readTail() {
		return get(`chats/${this.id}/messages/?limit=${PAGE}`);
	}

	async loadOlder() {
		if (!this.previous.value) return;
		this.loadingOlder ??= this.loadPageBefore(this.previous.value).finally(() => (this.loadingOlder = null));
		await this.loadingOlder;
	}

	/** @param {string} address */
	async loadPageBefore(address) {
		const page = await get(address);
		batch(() => {
			const here = new Set(this.messages.value.map((message) => message.id));
			const older = page.results.filter((/** @type {Message} */ message) => !here.has(message.id));
			this.messages.value = [...older, ...this.messages.value];
			this.previous.value = page.previous;
		});
	}

	/** Read back to a message of the branch that is shown. @param {string} messageId @returns {Promise<boolean>} whether it is there */
	async loadBackTo(messageId) {
		const isThere = () => this.messages.value.some((message) => message.id === messageId);
		while (!isThere() && this.previous.value) await this.loadOlder();
		return isThere();
	}

	/** Look for what another tab or device did. */
	async refresh() {
		if (this.state.value !== "ready" || this.live.value || this.pending.value) return;
		const [chat, page] = await this.read();
		if (this.live.value || this.pending.value) return;
		this.takeTail(page);
		await this.findTurn(chat);
	}

	/** The newest page takes the place of what is shown from its first message on. @param {import("./api.js").Page<Message>} page */
	takeTail(page) {
		const old = this.messages.value;
		const place = old.findIndex((message) => message.id === page.results[0]?.id);
		batch(() => {
			if (place < 0 || !page.previous) this.previous.value = page.previous;
			const kept = place < 0 || !page.previous ? [] : old.slice(0, place);
			this.messages.value = [...kept, ...page.results];
		});
	}

	/** @param {import("./chats.js").Chat} chat */
	async findTurn(chat) {
		const question = this.messages.value.findLast((message) => message.role === "human" || message.role === "hide_human");
		if (chat.live_turn_id) return this.watch(chat.live_turn_id, question?.id ?? null);
		const last = this.messages.value.at(-1);
		if (!question?.turn_id) return;
		const turnId = last?.turn_id ?? question.turn_id;
		const turn = await get(`turns/${turnId}/`).catch((error) => {
			if (error.status === 404) return null;
			throw error;
		});
		if (!turn) return;
		if (["queued", "running", "waiting"].includes(turn.status)) this.watch(turn.id, question.id);
		else if (turn.status === "cancelled") this.failure.value = { code: "cancelled", message: "", questionId: question.id };
		else this.failure.value = turn.error ? { ...turn.error, questionId: question.id } : null;
	}

	// -- Asking --

	/** @param {string} content @param {{ assistantId?: string | null, files?: import("./api.js").StoredFile[] }} [given] */
	ask(content, { assistantId = null, files = [] } = {}) {
		const fileIds = files.map((file) => file.id);
		return this.send({ key: newKey(), content, assistantId, fileIds, files, error: null });
	}

	/** Post a question. It may be sent again: Amber takes it once. @param {Pending} pending */
	async send(pending) {
		this.pending.value = { ...pending, error: null };
		this.failure.value = null;
		keep(`pending.${this.id}`, pending);
		try {
			const body = { content: pending.content, file_ids: pending.fileIds, ...(pending.assistantId && { assistant_id: pending.assistantId }) };
			const posted = await post(`chats/${this.id}/messages/`, body, { key: pending.key });
			this.asked(posted, pending.files);
		} catch (error) {
			if (!(error instanceof ApiError)) throw error;
			this.pending.value = { ...pending, error };
			// After a reload, what found no server is sent again, and what one refused is shown again.
			const { status, code, message, retryAfter } = error;
			if (status) keep(`pending.${this.id}`, { ...pending, refused: { status, code, message, retryAfter } });
			if (error.code === "turn_in_progress" && error.turnId) this.watch(error.turnId, null);
			this.isStopWanted = false;
		}
		if (this.isStopWanted) await this.stop();
	}

	/** @param {any} posted @param {import("./api.js").StoredFile[]} given */
	asked(posted, given) {
		keep(`pending.${this.id}`, null);
		batch(() => {
			this.pending.value = null;
			const files = given.map((file) => fileMessage(posted.message, file));
			const place = this.messages.value.findIndex((message) => message.id === posted.message.id);
			if (place < 0) this.messages.value = [...this.messages.value, ...files, posted.message];
			if (posted.turn) this.watch(posted.turn.id, posted.message.id);
		});
		announceChange("chat", this.id);
	}

	/** A chat that was made with its first question. @param {import("./chats.js").Chat} chat @param {string} content @param {import("./api.js").StoredFile[]} files */
	begin(chat, content, files) {
		const { active_leaf_id: id, live_turn_id: turnId, created_at } = chat;
		const question = /** @type {Message} */ (/** @type {unknown} */ ({ id, role: "human", content, turn_id: turnId, created_at, updated_at: created_at, sibling_ids: [id] }));
		this.state.value = "ready";
		this.asked({ message: question, turn: { id: turnId } }, files);
	}

	sendAgainAfterReload() {
		const pending = recall(`pending.${this.id}`, /** @type {Pending | null} */ (null));
		if (!pending || this.pending.value) return;
		const { refused } = pending;
		if (refused) this.pending.value = { ...pending, error: new ApiError(refused.status, refused, refused.retryAfter) };
		else if (!this.live.value) this.send(pending);
	}

	/** Give up a question that was not taken; its words go back to whoever asks. */
	withdraw() {
		const pending = this.pending.value;
		this.pending.value = null;
		keep(`pending.${this.id}`, null);
		return pending;
	}

	async stop() {
		const turn = this.live.value;
		this.isStopWanted = !turn && this.isBusy.value;
		if (!turn) return;
		if (this.folded) this.folded.isStopping = true;
		this.live.value = { ...turn, isStopping: true };
		await post(`turns/${turn.id}/cancel/`);
	}

	/** @param {string} messageId a question or an answer @param {string | null} [assistantId] */
	async regenerate(messageId, assistantId) {
		const body = assistantId ? { assistant_id: assistantId } : {};
		await this.branch(() => post(`messages/${messageId}/regenerate/`, body, { key: newKey() }));
	}

	/** @param {string} messageId @param {string} content */
	async edit(messageId, content) {
		await this.branch(() => patch(`messages/${messageId}/`, { content }, { key: newKey() }), messageId);
	}

	/** Once, however often a button is pressed before the server has said yes. @param {() => Promise<any>} ask @param {string} [insteadOf] */
	async branch(ask, insteadOf) {
		if (this.isBranching || this.isBusy.value) return;
		this.isBranching = true;
		try {
			this.branched(await ask(), insteadOf);
		} finally {
			this.isBranching = false;
		}
	}

	/** Show the new branch: up to its question, or up to where the edited one stood. @param {any} posted @param {string} [insteadOf] */
	branched(posted, insteadOf) {
		batch(() => {
			const at = this.messages.value.findIndex((message) => message.id === (insteadOf ?? posted.message.id));
			const before = at < 0 ? this.messages.value : this.messages.value.slice(0, at);
			this.messages.value = [...before, posted.message];
			this.failure.value = null;
			if (posted.turn) this.watch(posted.turn.id, posted.message.id);
		});
		announceChange("chat", this.id);
	}

	/** Show the newest branch through this message. @param {string} messageId */
	async showBranch(messageId) {
		noteChat(await put(`chats/${this.id}/branch/`, { message_id: messageId }));
		this.failure.value = null;
		this.takeTail(await this.readTail());
		await this.loadBackTo(messageId);
		announceChange("chat", this.id);
	}

	/** @param {Record<string, boolean>} decisions by call */
	async approve(decisions) {
		const turn = this.live.value;
		if (!turn) return;
		await post(`turns/${turn.id}/approve/`, { decisions }, { key: newKey() });
		const waiting = turn.waiting.map((call) => ({ ...call, approved: decisions[call.call_id] ?? call.approved }));
		if (this.folded) this.folded.waiting = waiting;
		this.live.value = { ...turn, waiting };
	}

	// -- Following a turn --

	/** @param {string} turnId @param {string | null} questionId */
	async watch(turnId, questionId) {
		if (this.folded?.id === turnId) return;
		this.watching?.abort();
		const watching = (this.watching = new AbortController());
		/** @type {Live & { tool: string }} */
		const folded = {
			...{ id: turnId, questionId, messages: [], text: {}, reasoning: {}, passages: [], tool: "" },
			...{ calls: new Map(), waiting: [], place: null, isLost: false, isStopping: false },
		};
		this.folded = folded;
		this.live.value = { ...folded };
		let isDrawn = true;
		const draw = () => {
			isDrawn = true;
			if (this.folded === folded) this.live.value = { ...folded, messages: [...folded.messages] };
		};
		/** @param {any} event */
		const onEvent = (event) => {
			folded.isLost = false;
			if (event.event === "queue.position" && !folded.place) announce(queueWords(event));
			fold(folded, event);
			foldMore(folded, event);
			if (event.event === "turn.waiting") announce(t("approval.announced"));
			if (!isDrawn) return;
			isDrawn = false;
			// A page in the background is not drawn, but what it says must be true when it is looked at.
			if (document.hidden) setTimeout(draw, 200);
			else requestAnimationFrame(draw);
		};
		const onLost = () => {
			folded.isLost = true;
			draw();
		};
		/** @type {any} */
		let last;
		try {
			last = await follow(streamUntil(watching.signal), turnId, onEvent, onLost);
		} catch (error) {
			last = error instanceof ApiError && error.status === 404 ? { event: "turn.gone" } : { event: "turn.failed", code: "other", message: String(error) };
		}
		if (this.folded === folded) await this.ended(folded, last);
	}

	/** @param {Live} folded @param {any} last the turn's last event */
	async ended(folded, last) {
		/** @type {import("./api.js").Page<Message> | null} */
		let page = null;
		// Without a network what was streamed stands in for what is stored: they are equal.
		if (last.event !== "turn.gone") page = await this.readTail().catch(() => null);
		if (this.folded !== folded) return;
		batch(() => {
			this.folded = null;
			this.live.value = null;
			if (page) this.takeTail(page);
			else this.messages.value = withMessages(this.messages.value, folded.messages);
			this.failure.value = failureOf(last, folded.questionId);
		});
		if (shown.value === this.id) announceEnd(last, folded);
		get(`chats/${this.id}/`).then(noteChat, () => {});
		announceChange("chat", this.id);
	}
}

/** Why a turn waits, and for how many. A reason that is not known yet is told as a busy worker. @param {{ position: number, reason: string }} place */
export function queueWords({ position, reason }) {
	const isLimited = reason === "organization_limit";
	if (position <= 1) return t(isLimited ? "answer.queued.limit.next" : "answer.queued.next");
	return t(isLimited ? "answer.queued.limit" : "answer.queued", { count: position - 1 });
}

/** @param {any} folded @param {any} event */
function foldMore(folded, event) {
	const { calls } = folded;
	folded.place = event.event === "queue.position" ? { position: event.position, reason: event.reason } : null;
	if (event.event === "source.added") {
		folded.passages = [...folded.passages.filter((/** @type {any} */ each) => each.number !== event.passage.number), event.passage];
	} else if (event.event === "tool.started") {
		calls.set(event.call_id, { name: event.name, arguments: event.arguments, startedAt: performance.now(), step: event.step });
		folded.waiting = folded.waiting.filter((/** @type {any} */ call) => call.call_id !== event.call_id);
	} else if (event.event === "tool.finished") {
		calls.delete(event.call_id);
		folded.waiting = folded.waiting.filter((/** @type {any} */ call) => call.call_id !== event.call_id);
	} else if (event.event === "turn.waiting") folded.waiting = event.calls;
	else if (event.event === "turn.snapshot") {
		folded.waiting = [];
		calls.clear();
	} else if (event.event === "turn.restarted") calls.clear();
}

/** @param {any} last the turn's last event @param {string | null} questionId */
function failureOf(last, questionId) {
	if (last.event === "turn.cancelled") return { code: "cancelled", message: "", questionId };
	if (last.event !== "turn.failed" && last.event !== "turn.incomplete") return null;
	return { code: last.code, message: last.message, retryable: last.retryable ?? true, questionId };
}

/** @param {any} last @param {Live} folded */
function announceEnd(last, folded) {
	if (last.event === "turn.cancelled") return announce(t("answer.stopped"));
	if (last.event === "turn.failed") return; // the error is an alert of its own
	const answer = folded.messages.filter((message) => message.role === "assistant").map((message) => message.content);
	announce(`${t("answer.complete")} ${answer.join("\n")}`);
}

/** @param {Message[]} messages @param {Message[]} more */
function withMessages(messages, more) {
	const ids = new Set(more.map((message) => message.id));
	return [...messages.filter((message) => !ids.has(message.id)), ...more];
}

/** A stand-in for the file's message, which the next look at the chat brings. @param {Message} question @param {import("./api.js").StoredFile} file @returns {Message} */
function fileMessage(question, file) {
	return { ...question, id: `file-${file.id}`, role: "file", content: "", file_id: file.id, file, turn_id: null, sibling_ids: [] };
}

// -- All of them --

/** @type {Map<string, Conversation>} */
const open = new Map();
const MOST_OPEN = 12;

// What found no network is sent as soon as there is one; Amber takes it once.
addEventListener("online", () => {
	for (const each of open.values()) {
		const pending = each.pending.peek();
		if (pending?.error?.status === 0) each.send(pending);
	}
});

/** The chat that is on the screen. */
export const shown = signal("");

/** @param {string} id */
export function conversationOf(id) {
	let found = open.get(id);
	if (found) open.delete(id);
	else {
		found = new Conversation(id);
		found.load();
	}
	open.set(id, found);
	for (const [other, each] of open) {
		if (open.size <= MOST_OPEN) break;
		if (!each.isBusy.peek() && other !== id) open.delete(other);
	}
	return found;
}

/** Show a chat that was made with its first question, and follow its turn. @param {import("./chats.js").Chat} chat @param {string} content @param {import("./api.js").StoredFile[]} files */
export function beginConversation(chat, content, files) {
	const begun = new Conversation(chat.id);
	open.set(chat.id, begun);
	begun.begin(chat, content, files);
}

/** @param {string} id of a chat that may be shown, or not */
export const openConversation = (id) => open.get(id);

/** @param {string} id */
export const forgetConversation = (id) => {
	open.get(id)?.watching?.abort();
	open.delete(id);
};
