/* A chat, new or old: its messages, and where the next one is written. */
import { useComputed } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { areLoaded, assistantOf, assistants, loadAssistants, makeUsual, usual } from "../app/assistants.js";
import { ApiError, newKey } from "../app/api.js";
import { changeChat, createChat, nameOf } from "../app/chats.js";
import { beginConversation, conversationOf, shown } from "../app/conversation.js";
import { entriesOf, textOf } from "../app/entries.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { loadMarkdown } from "../app/markdown.js";
import { current, navigate } from "../app/router.js";
import { me, organizations } from "../app/session.js";
import { addShortcut } from "../app/shortcuts.js";
import { keep, recall } from "../app/storage.js";
import { markdown } from "../shared/markdown.js";
import { Attachment } from "../components/attachment.js";
import { Composer } from "../components/composer.js";
import { Answer, Note, Question } from "../components/messages.js";
import { PassageDialog } from "../components/passage.js";
import { Picker } from "../components/picker.js";
import { Rename } from "../components/sidebar.js";
import { Timeline } from "../components/timeline.js";
import { attempt, Button, codeWords, copyText, Failure, focusComposer, Menu, note, PlainPage, useTitle, Waiting, wordsOf } from "../components/ui.js";
import { WhyDialog } from "../components/why.js";

/** More assistants than are chosen from at a glance. */
const MANY = 12;

/** The first question of a chat while no answer says that it was taken. Asked again as it is, with its key, it is asked once. @typedef {{ key: string, body: string, assistantId: string | null, files: import("../app/api.js").StoredFile[] }} Asking */

/** @param {{ params: Record<string, string>, query: URLSearchParams }} props */
export function Page({ params, query }) {
	useEffect(() => {
		// Soon needed, and large: while nobody waits for it.
		const timer = setTimeout(loadMarkdown, 300);
		return () => clearTimeout(timer);
	}, []);
	return params.id ? html`<${OldChat} key=${params.id} id=${params.id} message=${query.get("message") ?? ""} />` : html`<${NewChat} />`;
}

/** @param {{ chosen: import("../app/api.js").Assistant | undefined, onChoose: (id: string) => void }} props */
function AssistantMenu({ chosen, onChoose }) {
	const items = assistants.value.map((each) => ({ key: each.id, label: each.name, isChecked: each.id === chosen?.id, onSelect: () => onChoose(each.id) }));
	return html`<${items.length > MANY ? Picker : Menu} class="assistant-menu" label=${t("chat.choose")} filter=${t("chat.filter")} items=${items}
	><span class="drop"></span><span class="unseen">${t("chat.assistant")}: </span><span class="assistant-name">${chosen?.name ?? t("chat.choose")}</span><svg class="icon small" viewBox="0 0 24 24" aria-hidden="true"><path d="M6 9l6 6 6-6" /></svg><//>`;
}

function NewChat() {
	const [chosen, setChosen] = useState("");
	const [isStarting, setStarting] = useState(false);
	const asking = useRef(recall("asking.new", /** @type {Asking} */ ({ key: "", body: "", assistantId: null, files: [] })));
	const [given, setGiven] = useState(() => leftOver(asking.current));
	const assistant = assistantOf(chosen) ?? usual();
	const suggested = assistant?.suggested_questions ?? [];
	const name = me.value?.name.split(" ")[0];
	useTitle(t("chat.new"));
	useEffect(() => {
		shown.value = "";
		focusComposer();
	}, []);
	/** @param {string} text @param {{ assistantId: string | null, files: import("../app/api.js").StoredFile[] }} how */
	const send = async (text, { assistantId, files }) => {
		if (!areLoaded.value) await attempt(loadAssistants);
		const asked = assistantId ?? (assistantOf(chosen) ?? usual())?.id ?? null;
		if (!asked) {
			note(t("composer.noOne"), true);
			return setGiven({ text, assistantId, files });
		}
		setStarting(true);
		keep("draft.new", text); // until it is taken
		const question = { content: text, file_ids: files.map((file) => file.id) };
		const body = JSON.stringify([asked, question]);
		asking.current = { key: asking.current.body === body ? asking.current.key : newKey(), body, assistantId, files };
		keep("asking.new", asking.current);
		try {
			const chat = await createChat(asked, question, asking.current.key);
			keep("draft.new", null);
			keep("asking.new", null);
			makeUsual(asked);
			beginConversation(chat, text, files);
			if (current.value.path === "/") navigate(`/chats/${chat.id}`, { isQuiet: true });
		} catch (error) {
			if (!(error instanceof ApiError)) throw error;
			note(wordsOf(error), true);
			setGiven({ text, assistantId, files });
			setStarting(false);
		}
	};
	return html`<main class="chat new" id="content" tabindex="-1">
		<header class="chat-head"><${AssistantMenu} chosen=${assistant} onChoose=${(/** @type {string} */ id) => (setChosen(id), makeUsual(id))} /></header>
		<div class="greeting">
			<h1>${name ? t("chat.greeting.named", { name }) : t("chat.greeting")}</h1>
			${(assistant?.greeting || assistant?.description) && html`<${Described} text=${assistant.greeting || assistant.description} />`}
			${Boolean(suggested.length) && html`<div class="suggested" role="group" aria-label=${t("chat.suggested")}>${suggested.map((each) => html`<button type="button" class="button" key=${each} disabled=${isStarting} dir="auto" onClick=${() => send(each, { assistantId: null, files: [] })}>${each}</button>`)}</div>`}
			${areLoaded.value && !assistants.value.length && html`<p>${t("chat.noAssistants")} <a href="/assistants/new">${t("assistants.new")}</a></p>`}
		</div>
		<${Composer} draft="new" asks=${assistant?.name ?? ""} isBusy=${isStarting} onStop=${() => {}} onSend=${send} given=${given} />
	</main>`;
}

/** The files of a question on whose way the page was left, once: the text is the draft. @param {Asking} asking @returns {import("../components/composer.js").Given | null} */
function leftOver(asking) {
	const { assistantId, files } = asking;
	if (!files.length) return null;
	keep("asking.new", { ...asking, files: [] });
	return { text: "", assistantId, files };
}

/** What an assistant says of itself: a few words of Markdown. @param {{ text: string }} props */
function Described({ text }) {
	const ref = useRef(/** @type {HTMLElement | null} */ (null));
	useLayoutEffect(() => ref.current?.replaceChildren(markdown(text)), [text]);
	return html`<div class="dim described" ref=${ref}></div>`;
}

/** @param {{ id: string, message: string }} props message: the id of the one to go to, or "" */
function OldChat({ id, message }) {
	const conversation = conversationOf(id);
	const [passage, setPassage] = useState(/** @type {any} */ (null));
	const [why, setWhy] = useState("");
	const [isRenamed, setRenamed] = useState(false);
	const [given, setGiven] = useState(/** @type {import("../components/composer.js").Given | null} */ (null));
	const [goal, setGoal] = useState(/** @type {{ messageId: string, top?: number, focus?: string[] } | null} */ (null));
	const around = useMemo(() => ({ conversation, onCite: setPassage, onWhy: setWhy, onVersion: (/** @type {string} */ messageId, /** @type {{ top: number, focus: string[] }} */ how) => setGoal({ messageId, ...how }) }), [conversation]);
	const entries = useStable(useComputed(() => entriesOf(conversation.messages.value, conversation.live.value)).value);
	const draw = useMemo(
		() => (/** @type {import("../app/entries.js").Entry} */ entry) =>
			entry.kind === "question"
				? html`<${Question} entry=${entry} around=${around} />`
				: entry.kind === "answer"
					? html`<${Answer} entry=${entry} around=${around} />`
					: html`<${Note} entry=${entry} />`,
		[around],
	);
	const isReady = conversation.state.value === "ready";
	useEffect(() => {
		if (!message || !isReady) return;
		setGoal({ messageId: message });
		attempt(() => conversation.loadBackTo(message));
	}, [message, isReady]);
	const key = entries.find((entry) => (entry.kind === "answer" ? entry.messages : [entry.message]).some((/** @type {any} */ each) => each.id === goal?.messageId))?.key;
	const target = useRef(/** @type {(import("../components/timeline.js").Target & { goal: any }) | null} */ (null));
	if (key && target.current?.goal !== goal) target.current = { key, ...goal, goal }; // once, however often it goes and comes
	const { chat } = conversation;
	useTitle(chat ? nameOf(chat) : t("chat.title"));
	useEffect(() => {
		shown.value = id;
		focusComposer();
		const ends = [
			addShortcut({
				keys: "Mod+Shift+C",
				label: "shortcuts.copy",
				act: () => {
					const last = entriesOf(conversation.messages.value, null).findLast((entry) => entry.kind === "answer");
					if (last?.kind === "answer") copyText(textOf(last));
				},
			}),
			addShortcut({ keys: "Mod+Shift+Backspace", label: "shortcuts.stop", act: () => conversation.stop() }),
		];
		return () => ends.forEach((end) => end());
	}, [id]);
	const state = conversation.state.value;
	if (state === "missing")
		return html`<${PlainPage} title=${t("chat.missing.title")} text=${`${t("chat.missing.text")}${organizations.value.length > 1 ? ` ${t("chat.missing.elsewhere")}` : ""}`}><p><a class="button primary" href="/">${t("notFound.home")}</a></p><//>`;
	const { pending, failure } = conversation;
	const assistant = assistantOf(chat?.assistant_id);
	const withdraw = () => {
		const pending = conversation.withdraw();
		if (pending) setGiven({ text: pending.content, assistantId: pending.assistantId, files: pending.files });
	};
	return html`<main class="chat" id="content" tabindex="-1">
		<header class="chat-head">
			<h1 class="chat-name" dir="auto"><button type="button" title=${t("chats.rename")} onClick=${() => chat && setRenamed(true)}>${chat ? nameOf(chat) : ""}</button></h1>
			<${AssistantMenu} chosen=${assistant} onChoose=${(/** @type {string} */ to) => attempt(() => changeChat(id, { assistant_id: to }))} />
		</header>
		${state === "failed" && html`<${Failure} error=${new Error(t("chat.failed"))} onAgain=${() => conversation.load()} />`}
		${state === "loading" && html`<div class="timeline-box"><${Waiting} /></div>`}
		${
			state === "ready" &&
			html`<${Timeline} id=${id} target=${target.current} entries=${entries} draw=${draw} hasOlder=${conversation.previous.value !== null} onOlder=${() => attempt(() => conversation.loadOlder())}>
				${pending.value && html`<${Unsent} pending=${pending.value} onAgain=${() => pending.value && conversation.send(pending.value)} onEdit=${withdraw} />`}
				${failure.value && !conversation.isBusy.value && html`<${TurnFailure} failure=${failure.value} conversation=${conversation} />`}
			<//>`
		}
		<${Composer}
			draft=${id} asks=${assistant?.name ?? ""} given=${given}
			isBusy=${conversation.isBusy.value} isStopping=${conversation.live.value?.isStopping}
			onStop=${() => attempt(() => conversation.stop())}
			onSend=${(/** @type {string} */ text, /** @type {any} */ how) => attempt(() => conversation.ask(text, how))}
		/>
		${passage && html`<${PassageDialog} passage=${passage} onClose=${() => setPassage(null)} />`}
		${why && html`<${WhyDialog} turnId=${why} onClose=${() => setWhy("")} />`}
		${isRenamed && chat && html`<${Rename} chat=${chat} onClose=${() => setRenamed(false)} />`}
	</main>`;
}

/** A question that the server has not confirmed. @param {{ pending: import("../app/conversation.js").Pending, onAgain: () => void, onEdit: () => void }} props */
const Unsent = ({ pending, onAgain, onEdit }) => html`<article class="question unsent" aria-label=${t("message.you")} tabindex="-1">
	${pending.files.length > 0 && html`<div class="files">${pending.files.map((file) => html`<${Attachment} key=${file.id} message=${/** @type {any} */ ({ file })} />`)}</div>`}
	${pending.content && html`<div class="bubble" dir="auto">${pending.content}</div>`}
	${
		pending.error &&
		html`<div class="failure" role="alert">
			<p>${wordsOf(pending.error)}</p>
			<${Button} kind="quiet" onClick=${onEdit}>${t("message.edit")}<//><${Button} kind="quiet" icon="retry" onClick=${onAgain}>${t("again")}<//>
		</div>`
	}
</article>`;

/** @param {{ failure: NonNullable<import("../app/conversation.js").Conversation["failure"]["value"]>, conversation: import("../app/conversation.js").Conversation }} props */
const TurnFailure = ({ failure, conversation }) => html`<div class=${failure.code === "cancelled" ? "stopped" : "failure turn"} role=${failure.code === "cancelled" ? undefined : "alert"}>
	<p>${failure.code === "cancelled" ? t("answer.wasStopped") : codeWords(failure)}</p>
	${failure.questionId && html`<${Button} kind="quiet" icon="retry" onClick=${() => attempt(() => conversation.regenerate(/** @type {string} */ (failure.questionId))).then(focusComposer)}>${t("answer.retry")}<//>`}
</div>`;

/** The entries, those that have not changed being the same objects as before, so that they are not drawn again. @param {import("../app/entries.js").Entry[]} entries */
function useStable(entries) {
	const kept = useMemo(() => new Map(), []);
	return entries.map((entry) => {
		const before = kept.get(entry.key);
		const isSame = before && isUnchanged(before, entry);
		if (!isSame) kept.set(entry.key, entry);
		return isSame ? before : entry;
	});
}

/** @param {any} a @param {any} b */
function isUnchanged(a, b) {
	if (a.kind !== b.kind || a.live || b.live) return false;
	const [old, now] = [a.messages ?? [a.message, ...(a.files ?? [])], b.messages ?? [b.message, ...(b.files ?? [])]];
	return old.length === now.length && old.every((/** @type {any} */ message, /** @type {number} */ i) => isSameRow(message, now[i]));
}

/** @param {any} a @param {any} b */
const isSameRow = (a, b) =>
	a === b || (a.id === b.id && a.updated_at === b.updated_at && a.content === b.content && String(a.sibling_ids) === String(b.sibling_ids) && a.feedback?.updated_at === b.feedback?.updated_at && a.file?.id === b.file?.id);
