/* What a person thinks of an answer: thumbs, with a reason and a comment if they like. */
import { useState } from "preact/hooks";
import { announce } from "../app/announce.js";
import { put, remove } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { attempt, Button, Dialog, Field, IconButton } from "./ui.js";

const REASONS = /** @type {const} */ ({
	up: ["correct", "clear", "complete", "other"],
	down: ["wrong", "incomplete", "off_topic", "sources", "style", "harmful", "other"],
});

/** @typedef {{ value: "up" | "down", reason: string | null, comment: string }} Feedback */

/** @param {{ message: any, conversation: import("../app/conversation.js").Conversation }} props */
export function Thumbs({ message, conversation }) {
	const [isAsked, setAsked] = useState(false);
	/** @type {Feedback | null} */
	const given = message.feedback ?? null;
	/** @param {Feedback | null} feedback */
	const note = (feedback) => {
		conversation.messages.value = conversation.messages.value.map((each) => (each.id === message.id ? /** @type {any} */ ({ ...each, feedback }) : each));
	};
	/** @param {"up" | "down"} value */
	const judge = (value) =>
		attempt(async () => {
			if (given?.value === value) {
				await remove(`messages/${message.id}/feedback/`);
				note(null);
				return;
			}
			note(await put(`messages/${message.id}/feedback/`, { value }));
			announce(t("feedback.thanks"));
			setAsked(true);
		});
	return html`<span class="thumbs" role="group" aria-label=${t("feedback.label")}>
		<${IconButton} icon="thumbUp" label=${t("feedback.up")} aria-pressed=${given?.value === "up"} onClick=${() => judge("up")} />
		<${IconButton} icon="thumbDown" label=${t("feedback.down")} aria-pressed=${given?.value === "down"} onClick=${() => judge("down")} />
		${isAsked && given && html`<${Reason} given=${given} message=${message} onClose=${() => setAsked(false)} onGiven=${note} />`}
	</span>`;
}

/** @param {{ given: Feedback, message: any, onClose: () => void, onGiven: (feedback: Feedback) => void }} props */
function Reason({ given, message, onClose, onGiven }) {
	const [reason, setReason] = useState(given.reason ?? "");
	const [comment, setComment] = useState(given.comment ?? "");
	/** @param {Event} event */
	const send = async (event) => {
		event.preventDefault();
		const body = { value: given.value, comment, ...(reason && { reason }) };
		if (await attempt(async () => onGiven(await put(`messages/${message.id}/feedback/`, body)))) onClose();
	};
	return html`<${Dialog} title=${t(given.value === "up" ? "feedback.up.title" : "feedback.down.title")} onClose=${onClose} class="small">
		<form onSubmit=${send}>
			<fieldset class="choices">
				<legend>${t("feedback.reason")}</legend>
				${REASONS[given.value].map(
					(each) => html`<label class="choice"><input type="radio" name="reason" checked=${reason === each} onChange=${() => setReason(each)} /><span>${t(`feedback.reason.${each}`)}</span></label>`,
				)}
			</fieldset>
			<${Field} as="textarea" label=${t("feedback.comment")} value=${comment} onValue=${setComment} rows="3" maxlength="2000" />
			<div class="actions"><${Button} onClick=${onClose}>${t("feedback.skip")}<//><${Button} kind="primary" type="submit">${t("feedback.send")}<//></div>
		</form>
	<//>`;
}
