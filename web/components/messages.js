/* The entries of a conversation: questions, answers, notes. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { assistantOf } from "../app/assistants.js";
import { queueWords } from "../app/conversation.js";
import { textOf } from "../app/entries.js";
import { html } from "../app/html.js";
import { moment, t } from "../app/i18n.js";
import { Attachment } from "./attachment.js";
import { Markdown } from "./markdown.js";
import { memo } from "./memo.js";
import { ToolCard } from "./tool-card.js";
import { attempt, Button, copyText, focusComposer, IconButton, isSending } from "./ui.js";
import { Thumbs } from "./thumbs.js";

/** @typedef {import("../app/entries.js").Answer} AnswerEntry */
/** @typedef {import("../app/entries.js").Question} QuestionEntry */
/** @typedef {import("../app/conversation.js").Conversation} Conversation */
/** @typedef {{ conversation: Conversation, onCite: (passage: any) => void, onWhy: (turnId: string) => void, onVersion: (messageId: string, how: { top: number, focus: string[] }) => void }} Around */

/** Arrows between the versions of a message. The next one stands where this one did, and its arrow has focus. @param {{ message: import("../app/api.js").Message, around: Around }} props */
function Siblings({ message, around }) {
	const { conversation } = around;
	const ref = useRef(/** @type {HTMLElement | null} */ (null));
	const ids = message.sibling_ids ?? [];
	const at = ids.indexOf(message.id);
	if (ids.length < 2) return null;
	/** @param {number} to */
	const show = (to) => {
		const { top } = /** @type {Element} */ (ref.current?.closest("[data-entry]")).getBoundingClientRect();
		const arrows = [".turned", ":not(.turned)"].map((each) => `.siblings ${each}:enabled`);
		around.onVersion(ids[to], { top, focus: to < at ? arrows : arrows.reverse() });
		return attempt(() => conversation.showBranch(ids[to]));
	};
	return html`<span class="siblings" role="group" ref=${ref} aria-label=${t("message.branch", { place: at + 1, count: ids.length })}>
		<${IconButton} icon="chevron" class="turned" label=${t("message.previous")} disabled=${at === 0 || conversation.isBusy.value} onClick=${() => show(at - 1)} />
		<span aria-hidden="true">${at + 1}/${ids.length}</span>
		<${IconButton} icon="chevron" label=${t("message.next")} disabled=${at === ids.length - 1 || conversation.isBusy.value} onClick=${() => show(at + 1)} />
	</span>`;
}

export const Question = memo(
	/** @param {{ entry: QuestionEntry, around: Around }} props */
	function Question({ entry, around }) {
		const { message, files } = entry;
		const { conversation } = around;
		const [isEdited, setEdited] = useState(false);
		const ref = useRef(/** @type {HTMLElement | null} */ (null));
		const close = () => {
			setEdited(false);
			requestAnimationFrame(() => /** @type {HTMLElement | null} */ (ref.current?.querySelector(".edit-button"))?.focus());
		};
		return html`<article class="question" tabindex="-1" ref=${ref} aria-label=${t("message.you")}>
			${files.length > 0 && html`<div class="files">${files.map((file) => html`<${Attachment} key=${file.id} message=${file} />`)}</div>`}
			${
				isEdited
					? html`<${Editor} text=${message.content} onClose=${close} onSend=${(/** @type {string} */ text) => attempt(() => conversation.edit(message.id, text)).then((ok) => ok && (setEdited(false), focusComposer()))} />`
					: message.content.trim() && html`<${Bubble} text=${message.content} />`
			}
			${
				!isEdited &&
				html`<div class="message-actions">
					<${Siblings} message=${message} around=${around} />
					<${IconButton} icon="edit" class="edit-button" label=${t("message.edit")} disabled=${conversation.isBusy.value} onClick=${() => setEdited(true)} />
					${message.content.trim() && html`<${IconButton} icon="copy" label=${t("message.copy")} onClick=${() => copyText(message.content)} />`}
					<time datetime=${message.created_at}>${moment(message.created_at)}</time>
				</div>`
			}
		</article>`;
	},
);

/** More of a question than is read again each time it is scrolled past. @param {string} text */
const isLong = (text) => text.length > 2_500 || text.split("\n", 31).length > 30;

/** What was asked; of a long text only its beginning, until it is wanted. @param {{ text: string }} props */
function Bubble({ text }) {
	const [isWhole, setWhole] = useState(!isLong(text));
	return html`<div class=${`bubble ${isWhole ? "" : "cut"}`} dir="auto">${text}</div>
		${isLong(text) && html`<button type="button" class="link small" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>${t(isWhole ? "message.less" : "message.whole")}</button>`}`;
}

/** @param {{ text: string, onClose: () => void, onSend: (text: string) => void }} props */
function Editor({ text: original, onClose, onSend }) {
	const [text, setText] = useState(original);
	const ref = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
	useLayoutEffect(() => {
		const box = ref.current;
		box?.focus();
		box?.setSelectionRange(box.value.length, box.value.length);
	}, []);
	/** @param {KeyboardEvent} event */
	const onKeyDown = (event) => {
		if (event.key === "Escape") onClose();
		else if (isSending(event)) {
			event.preventDefault();
			if (text.trim()) onSend(text);
		}
	};
	return html`<div class="editor">
		<textarea ref=${ref} dir="auto" aria-label=${t("message.edit.label")} value=${text} onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} onKeyDown=${onKeyDown}></textarea>
		<div class="actions">
			<${Button} onClick=${onClose}>${t("cancel")}<//>
			<${Button} kind="primary" disabled=${!text.trim()} onClick=${() => onSend(text)}>${t("message.edit.send")}<//>
		</div>
	</div>`;
}

export const Answer = memo(
	/** @param {{ entry: AnswerEntry, around: Around }} props */
	function Answer({ entry, around }) {
		const { conversation, onCite, onWhy } = around;
		const { live, parts, passages, turnId, messages } = entry;
		const author = entry.author || (live && assistantOf(conversation.chat?.assistant_id)?.name) || t("message.someAssistant");
		const text = textOf(entry);
		const isSilent = live && !live.waiting.length && !parts.some((part) => part.kind === "text" && part.isGrowing && (part.text || part.reasoning)) && !live.calls.size;
		const cited = passages.filter((passage) => text.includes(`[${passage.number}]`));
		const said = messages.filter((message) => message.role === "assistant").at(-1);
		return html`<article class=${`answer ${live ? "live" : ""}`} tabindex="-1" aria-label=${t("message.assistant", { name: author })} aria-busy=${live ? "true" : "false"}>
			<p class="author" aria-hidden="true"><span class="drop"></span>${author}</p>
			${parts.map((part) => {
				if (part.kind === "call") return html`<${ToolCard} key=${part.key} call=${part.call} conversation=${conversation} />`;
				if (part.kind === "file") return html`<${Attachment} key=${part.key} message=${part.message} />`;
				return html`<div key=${part.key} class="said">
					${part.reasoning && html`<${Reasoning} text=${part.reasoning} isGrowing=${part.isGrowing && !part.text} />`}
					${part.text && html`<${Markdown} text=${part.text} passages=${passages} isGrowing=${part.isGrowing} onCite=${onCite} />`}
				</div>`;
			})}
			${isSilent && html`<p class="pending"><span class="dots" aria-hidden="true"></span>${silentWords(live)}</p>`}
			${live?.isLost && html`<p class="lost">${t("answer.lost")}</p>`}
			${cited.length > 0 && !live && html`<${Sources} passages=${cited} onCite=${onCite} />`}
			${
				!live &&
				html`<div class="message-actions">
					${messages[0] && html`<${Siblings} message=${messages[0]} around=${around} />`}
					<${IconButton} icon="copy" label=${t("message.copy")} onClick=${() => copyText(text)} />
					<${IconButton} icon="retry" label=${t("message.regenerate")} disabled=${conversation.isBusy.value} onClick=${() => attempt(() => conversation.regenerate(messages[0].id)).then(focusComposer)} />
					${said && html`<${Thumbs} message=${said} conversation=${conversation} />`}
					${turnId && html`<${IconButton} icon="info" label=${t("message.why")} onClick=${() => onWhy(turnId)} />`}
					${messages[0] && html`<time datetime=${messages[0].created_at}>${moment(messages[0].created_at)}</time>`}
				</div>`
			}
		</article>`;
	},
);

/** What there is to say while nothing else is shown. @param {NonNullable<AnswerEntry["live"]>} live */
function silentWords(live) {
	if (live.isStopping) return t("answer.stopping");
	return live.place ? queueWords(live.place) : t("answer.thinking");
}

/** What the model thought, folded. @param {{ text: string, isGrowing: boolean }} props */
const Reasoning = ({ text, isGrowing }) => html`<details class="reasoning">
	<summary>${isGrowing && html`<span class="dots" aria-hidden="true"></span>`}${t(isGrowing ? "answer.reasoning.live" : "answer.reasoning")}</summary>
	<div class="reasoning-text" dir="auto">${text}</div>
</details>`;

/** @param {{ passages: any[], onCite: (passage: any) => void }} props */
const Sources = ({ passages, onCite }) => html`<details class="sources">
	<summary>${t("answer.sources")} <span class="count">${passages.length}</span></summary>
	<ol>
		${passages
			.sort((a, b) => a.number - b.number)
			.map(
				(passage) => html`<li value=${passage.number} key=${passage.number}>
					<button type="button" class="link" onClick=${() => onCite(passage)}>${passage.document.name}</button>
					${passage.page ? html` <span class="dim">${t("answer.page", { page: passage.page })}</span>` : ""}
				</li>`,
			)}
	</ol>
</details>`;

/** @param {{ entry: { message: import("../app/api.js").Message } }} props */
export const Note = ({ entry: { message } }) => html`<aside class="aside" tabindex="-1">
	${message.role === "file" ? html`<${Attachment} message=${message} />` : html`<span class="dim">${t("message.system")}</span> <span dir="auto">${message.content}</span>`}
</aside>`;
