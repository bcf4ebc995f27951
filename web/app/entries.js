/* What a conversation shows, from its rows: questions, and answers with all that belongs to them. */

/** @typedef {import("./api.js").Message} Message */
/** @typedef {{ id: string, name: string, arguments: string, result: Message | null, startedAt: string | null, files: Message[], isRunning: boolean, waiting: import("./conversation.js").WaitingCall | null }} Call */
/**
 * @typedef {{ kind: "text", key: string, text: string, reasoning: string, isGrowing: boolean, message: Message | null }
 *   | { kind: "call", key: string, call: Call }
 *   | { kind: "file", key: string, message: Message }} Part
 * @typedef {{ kind: "question", key: string, message: Message, files: Message[] }} Question
 * @typedef {{ kind: "answer", key: string, turnId: string | null, messages: Message[], parts: Part[], passages: any[], author: string, live: import("./conversation.js").Live | null }} Answer
 * @typedef {{ kind: "note", key: string, message: Message }} Note
 * @typedef {Question | Answer | Note} Entry
 */

const ASKS = new Set(["human", "human_later"]);
const ANSWERS = new Set(["assistant", "tool_call", "tool", "knowledge"]);

/**
 * @param {Message[]} messages
 * @param {import("./conversation.js").Live | null} live
 * @returns {Entry[]}
 */
export function entriesOf(messages, live) {
	const stored = live ? messages.filter((message) => !live.messages.some((each) => each.id === message.id)) : messages;
	/** @type {Entry[]} */
	const entries = [];
	/** @type {Message[]} */
	let files = [];
	/** @type {Message[]} */
	let answer = [];
	const endAnswer = () => {
		if (answer.length) entries.push(answerOf(answer, null));
		answer = [];
	};
	for (const message of stored) {
		const isOfAnswer = ANSWERS.has(message.role) || (message.role === "file" && (message.tool_call || (answer.length && message.turn_id)));
		if (isOfAnswer) {
			if (answer.length && answer[0].turn_id !== message.turn_id) endAnswer();
			answer.push(message);
			continue;
		}
		endAnswer();
		if (message.hidden) continue;
		if (message.role === "file") files.push(message);
		else if (ASKS.has(message.role)) {
			entries.push({ kind: "question", key: message.id, message, files });
			files = [];
		} else entries.push({ kind: "note", key: message.id, message });
	}
	endAnswer();
	for (const message of files) entries.push({ kind: "note", key: message.id, message });
	if (live) entries.push(answerOf(live.messages.filter((message) => message.role !== "human"), live, messages.findLast((message) => ASKS.has(message.role))));
	return entries;
}

/** @param {Message[]} messages @param {import("./conversation.js").Live | null} live @param {Message} [question] which may name whom it asks @returns {Answer} */
function answerOf(messages, live, question) {
	/** @type {Part[]} */
	const parts = [];
	/** @type {Map<string, Call>} */
	const calls = new Map();
	/** @type {Map<number, any>} */
	const passages = new Map((live?.passages ?? []).map((each) => [each.number, each]));
	for (const message of messages) {
		for (const passage of message.citations ?? []) passages.set(passage.number, passage);
		const { role, tool_call: call } = message;
		const reasoning = /** @type {any} */ (message).reasoning ?? "";
		if (role === "assistant" || (role === "tool_call" && (message.content || reasoning)))
			if (message.content || reasoning) parts.push({ kind: "text", key: `text-${textsOf(parts)}`, text: message.content, reasoning, isGrowing: false, message });
		if (role === "tool_call" && call) {
			const waiting = live?.waiting.find((each) => each.call_id === call.id) ?? null;
			const made = { id: call.id, name: call.name, arguments: call.arguments, result: null, startedAt: message.created_at, files: [], isRunning: Boolean(live?.calls.has(call.id)), waiting };
			calls.set(nameOf(call), made);
			parts.push({ kind: "call", key: `call-${nameOf(call)}`, call: made });
		} else if (role === "tool" && call) {
			const known = calls.get(nameOf(call));
			if (known) known.result = message;
		} else if (role === "file") {
			const known = call ? calls.get(nameOf(call)) : undefined;
			if (known) known.files.push(message);
			else parts.push({ kind: "file", key: message.id, message });
		}
		if (role === "tool" && message.file && call) calls.get(nameOf(call))?.files.push(message);
	}
	if (live) {
		const steps = new Set([...Object.keys(live.text), ...Object.keys(live.reasoning)].map(Number));
		for (const step of [...steps].sort((a, b) => a - b))
			parts.push({ kind: "text", key: `text-${textsOf(parts)}`, text: live.text[step] ?? "", reasoning: live.reasoning[step] ?? "", isGrowing: true, message: null });
	}
	const turnId = live?.id ?? messages[0]?.turn_id ?? null;
	const author = (messages.findLast((message) => message.assistant) ?? question)?.assistant?.name ?? "";
	return { kind: "answer", key: turnId ? `turn-${turnId}` : messages[0].id, turnId, messages, parts, passages: [...passages.values()], author, live };
}

/** Providers may count their calls anew in each reply. @param {{ id: string, reply_id: string | null }} call */
const nameOf = (call) => `${call.reply_id ?? ""}-${call.id}`;

/** Texts are named by their place, so that a stored one takes the place of what was streamed without a flicker. @param {Part[]} parts */
const textsOf = (parts) => parts.filter((part) => part.kind === "text").length;

/** All that the assistant said, as it was written. @param {Answer} answer */
export const textOf = (answer) => answer.parts.flatMap((part) => (part.kind === "text" && part.text ? [part.text] : [])).join("\n\n");
