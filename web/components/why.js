/* "Why this answer": a turn's manifest, for people. */
import { useEffect, useState } from "preact/hooks";
import { get } from "../app/api.js";
import { html } from "../app/html.js";
import { isKey, list, number, t, time } from "../app/i18n.js";
import { Button, Dialog, Failure, Waiting } from "./ui.js";

/** @param {{ turnId: string, onClose: () => void }} props */
export function WhyDialog({ turnId, onClose }) {
	const [manifest, setManifest] = useState(/** @type {any} */ (null));
	const [turn, setTurn] = useState(/** @type {any} */ (null));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const load = () => {
		setError(null);
		Promise.all([get(`turns/${turnId}/manifest/`), get(`turns/${turnId}/`)]).then(([found, of]) => {
			setManifest(found);
			setTurn(of);
		}, setError);
	};
	useEffect(load, [turnId]);
	return html`<${Dialog} title=${t("why.title")} onClose=${onClose} class="wide">
		<p class="dim">${t("why.intro")}</p>
		${/** @type {any} */ (error)?.status === 404 ? html`<p>${t("why.gone")}</p>` : error && html`<${Failure} error=${error} onAgain=${load} />`}
		${!manifest && !error && html`<${Waiting} />`}
		${manifest && html`<${Manifest} manifest=${manifest} turn=${turn} />`}
	<//>`;
}

/** @param {{ title: string, count?: number, children?: any, isOpen?: boolean }} props */
const Part = ({ title, count, children, isOpen }) => html`<details class="part" open=${isOpen}>
	<summary><h3>${title}</h3>${count !== undefined && html`<span class="count">${number(count)}</span>`}</summary>
	<div>${children}</div>
</details>`;

const None = () => html`<p class="dim">${t("why.none")}</p>`;

/** @param {{ value: number }} props */
const Tokens = ({ value }) => html`<span class="tokens">${number(value)}</span>`;

/** The words for a name that Amber uses; of one that is newer than this page, the name. @param {string} kind @param {string} name */
function nameOf(kind, name) {
	const key = `why.${kind}.${name.replace(/ /g, "_")}`;
	return isKey(key) ? t(key) : name.replace(/_/g, " ");
}

/** What was left out, that of one kind and for one reason together. @param {any[]} all @returns {string[]} */
function leftOutWords(all) {
	/** @type {Map<string, any[]>} */
	const groups = new Map();
	for (const each of all) {
		const group = [each.kind, each.code, each.code === "unreadable" ? each.reason : ""].join();
		groups.set(group, [...(groups.get(group) ?? []), each]);
	}
	return [...groups.values()].flatMap((same) => {
		const [{ code, reason }] = same;
		const key = `why.left.${code}`;
		// Earlier releases recorded no code.
		if (!isKey(key)) return same.map((each) => [each.count, each.name, each.reason].filter(Boolean).join(" · "));
		const count = same.reduce((sum, each) => sum + (each.count ?? 1), 0);
		return [t(key, { count, reason, names: list(same.map((each) => each.name ?? "")) })];
	});
}

/** @param {{ manifest: any, turn: any }} props */
function Manifest({ manifest, turn }) {
	const { tokens, blocks, memories, passages, tools, messages } = manifest;
	const { limit, ...parts } = tokens;
	const used = parts.total ?? Object.values(parts).reduce((sum, each) => sum + Number(each), 0);
	const bars = Object.entries(parts).filter(([name, value]) => name !== "total" && Number(value) > 0);
	return html`<div class="manifest">
		<dl class="facts">
			<div><dt>${t("why.model")}</dt><dd>${manifest.model}${manifest.model_fallback && html`<br /><span class="dim">${t("why.fallback", { why: manifest.model_fallback })}</span>`}</dd></div>
			<div><dt>${t("why.tokens")}</dt><dd>${limit ? t("why.tokensOf", { used, limit }) : number(used)}</dd></div>
			${turn?.usage?.completion_tokens !== undefined && html`<div><dt>${t("why.answerTokens")}</dt><dd>${number(turn.usage.completion_tokens)}</dd></div>`}
			${manifest.scene && html`<div><dt>${t("why.scene")}</dt><dd>${manifest.scene.label ?? t("why.noScene")}</dd></div>`}
		</dl>
		${limit && html`<meter class="meter" min="0" max=${limit} value=${used} aria-label=${t("why.tokensOf", { used, limit })}></meter>`}
		<table class="plain">
			<thead><tr><th scope="col">${t("why.part")}</th><th scope="col" class="align-right">${t("why.tokens")}</th></tr></thead>
			<tbody>${bars.map(([name, value]) => html`<tr key=${name}><th scope="row">${nameOf("part", name)}</th><td class="align-right"><${Tokens} value=${Number(value)} /></td></tr>`)}</tbody>
		</table>
		${manifest.untrusted.length > 0 && html`<p class="dim">${t("why.untrusted", { kinds: list(manifest.untrusted.map((/** @type {string} */ each) => nameOf("kind", each))) })}</p>`}
		<${Part} title=${t("why.prompt")} count=${manifest.system_prompts.length}>
			${manifest.system_prompts.map((/** @type {string} */ prompt) => html`<pre class="prose" tabindex="0" role="group" aria-label=${t("why.prompt")}>${prompt}</pre>`)}
			${!manifest.system_prompts.length && html`<${None} />`}
		<//>
		<${Part} title=${t("why.messages")} count=${messages.length}>
			<p>${t("why.messages.text", { count: messages.length })} ${manifest.history_is_cut ? t("why.cut") : ""}</p>
		<//>
		<${Part} title=${t("why.blocks")} count=${blocks.length}>
			${blocks.length ? html`<ul>${blocks.map((/** @type {any} */ each) => html`<li key=${each.id}>${t("why.block", { from: time(each.from_at), until: time(each.until_at) })} <span class="dim">${t("why.relevance", { value: number(each.relevance, { maximumFractionDigits: 2 }) })} · <${Tokens} value=${each.tokens} /></span></li>`)}</ul>` : html`<${None} />`}
		<//>
		<${Part} title=${t("why.memories")} count=${memories.length}>
			${memories.length ? html`<ul>${memories.map((/** @type {any} */ each) => html`<li key=${each.id}>${each.content ?? html`<em>${t("why.forgotten")}</em>`} <span class="dim"><${Tokens} value=${each.tokens} /></span></li>`)}</ul>` : html`<${None} />`}
		<//>
		<${Part} title=${t("why.passages")} count=${passages.length}>
			${manifest.library_searched ? null : html`<p class="dim">${t("why.notSearched")}</p>`}
			${passages.length > 0 && html`<ul>${passages.map((/** @type {any} */ each) => html`<li key=${each.number}>[${each.number}] <span class="dim">${t("why.relevance", { value: number(each.relevance, { maximumFractionDigits: 2 }) })} · <${Tokens} value=${each.tokens} /></span></li>`)}</ul>`}
			${manifest.notes.length > 0 && html`<p class="dim">${manifest.notes.join(" ")}</p>`}
		<//>
		<${Part} title=${t("why.tools")} count=${tools.length}>
			${tools.length ? html`<ul class="columns">${tools.map((/** @type {any} */ each) => html`<li key=${each.name}><code>${each.name}</code> <span class="dim"><${Tokens} value=${each.tokens} /></span></li>`)}</ul>` : html`<${None} />`}
		<//>
		<${Part} title=${t("why.left")} count=${manifest.left_out.length}>
			${manifest.left_out.length ? html`<ul>${leftOutWords(manifest.left_out).map((words) => html`<li key=${words}>${words}</li>`)}</ul>` : html`<${None} />`}
		<//>
		<${Request} id=${turn.id} />
	</div>`;
}

/** @param {{ id: string }} props */
function Request({ id }) {
	const [messages, setMessages] = useState(/** @type {any} */ (undefined));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const load = () => get(`turns/${id}/manifest/?request=true`).then((found) => setMessages(found.request ?? null), setError);
	if (error) return html`<${Failure} error=${error} />`;
	if (messages === undefined) return html`<p class="actions"><${Button} onClick=${load}>${t("why.showRequest")}<//></p>`;
	if (messages === null) return html`<p class="dim">${t("why.requestGone")}</p>`;
	return html`<${Part} title=${t("why.request")} count=${messages.length} isOpen=${true}>
		${messages.map((/** @type {any} */ each) => html`<h4>${nameOf("role", each.role)}</h4><pre class="prose" tabindex="0" role="group" aria-label=${nameOf("role", each.role)}>${typeof each.content === "string" ? each.content : JSON.stringify(each.content ?? each.tool_calls, null, 2)}</pre>`)}
	<//>`;
}
