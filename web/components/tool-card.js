/* A call of a tool: folded, with arguments, result and time; or waiting for a person's permission. */
import { useState } from "preact/hooks";
import { html } from "../app/html.js";
import { duration, t } from "../app/i18n.js";
import { Attachment } from "./attachment.js";
import { attempt, Button, focusComposer, Icon } from "./ui.js";

/** @param {string} text meant to be JSON, not promised */
function pretty(text) {
	try {
		return JSON.stringify(JSON.parse(text), null, 2);
	} catch {
		return text;
	}
}

/** @param {{ call: import("../app/entries.js").Call, conversation: import("../app/conversation.js").Conversation }} props */
export function ToolCard({ call, conversation }) {
	const { name, result, startedAt, isRunning, waiting, files } = call;
	if (waiting && !result) return html`<${Approval} call=${waiting} conversation=${conversation} />`;
	const tookMs = result && startedAt ? Date.parse(result.created_at) - Date.parse(startedAt) : null;
	return html`<div class="tool">
		<details>
			<summary>
				${isRunning || !result ? html`<span class="dots" aria-hidden="true"></span>` : html`<${Icon} name="tools" />`}
				<span class="tool-name">${t(result || !isRunning ? "tool.done" : "tool.running", { name })}</span>
				${tookMs !== null && html`<span class="dim">${duration(tookMs)}</span>`}
			</summary>
			<div class="tool-body">
				<p class="label">${t("tool.arguments")}</p>
				<pre tabindex="0" role="group" aria-label=${t("tool.arguments")} dir="ltr">${pretty(call.arguments)}</pre>
				<p class="label">${t("tool.result")}</p>
				<pre tabindex="0" role="group" aria-label=${t("tool.result")} class="result">${result ? pretty(result.content) : t("tool.noResult")}</pre>
			</div>
		</details>
		${files.map((message) => html`<${Attachment} key=${message.id} message=${message} />`)}
	</div>`;
}

/** @param {{ call: import("../app/conversation.js").WaitingCall, conversation: import("../app/conversation.js").Conversation }} props */
function Approval({ call, conversation }) {
	const [isSent, setSent] = useState(false);
	/** @param {boolean} isAllowed */
	const decide = async (isAllowed) => {
		setSent(true);
		focusComposer(); // the button takes no focus any more, and is soon gone
		if (!(await attempt(() => conversation.approve({ [call.call_id]: isAllowed })))) setSent(false);
	};
	return html`<section class="approval" role="group" aria-label=${t("approval.title")}>
		<p class="approval-title"><${Icon} name="help" />${t("approval.title")}</p>
		<p>${t("approval.text", { name: call.name })}</p>
		<pre tabindex="0" role="group" aria-label=${t("tool.arguments")} dir="ltr">${pretty(call.arguments)}</pre>
		${
			call.approved === null
				? html`<div class="actions">
						<${Button} disabled=${isSent} onClick=${() => decide(false)}>${t("approval.decline")}<//>
						<${Button} kind="primary" disabled=${isSent} onClick=${() => decide(true)}>${t("approval.allow")}<//>
					</div>`
				: html`<p class="dim">${t(call.approved ? "approval.allowed" : "approval.declined")}</p>`
		}
	</section>`;
}
