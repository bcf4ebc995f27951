/* One service: what it can do, a call to try, and the log of calls. */
import { useId, useState } from "preact/hooks";
import { announce } from "../app/announce.js";
import { patch, post, remove } from "../app/api.js";
import { html } from "../app/html.js";
import { duration, t, time } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { GroupShares } from "../components/group-shares.js";
import { Choice, Tick } from "../components/forms.js";
import { Listed, useList, useRow } from "../components/lists.js";
import { attempt, Button, Confirm, Failure, Field, Menu, note, useTitle, Waiting } from "../components/ui.js";

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const { row: tool, error, refresh, setRow } = useRow(`tools/${params.id}/`);
	const [outcome, setOutcome] = useState("");
	const calls = useList(`tools/${params.id}/calls/?limit=50${outcome && `&outcome=${outcome}`}`);
	const [tried, setTried] = useState("");
	const [isLeaving, setLeaving] = useState(false);
	const [isSharing, setSharing] = useState(false);
	useTitle(tool?.name ?? t("tools.title"));
	if (!tool) return html`<main class="page" id="content" tabindex="-1"><h1>${t("tools.title")}</h1>${error ? html`<${Failure} error=${error} onAgain=${refresh} /><p><a href="/tools">${t("tools.all")}</a></p>` : html`<${Waiting} />`}</main>`;
	const mayWrite = tool.access !== "use";
	/** @param {string} name @param {"ask_first" | "trusted"} kind @param {boolean} isOn */
	const mark = (name, kind, isOn) =>
		attempt(async () => {
			const named = (tool.options[kind] ?? []).filter((/** @type {string} */ each) => each !== name);
			setRow(await patch(`tools/${tool.id}/`, { options: { ...tool.options, [kind]: isOn ? [...named, name] : named } }));
		});
	const shownTry = tried || tool.functions[0]?.name;
	return html`<main class="page" id="content" tabindex="-1">
		<p class="crumbs"><a href="/tools">${t("tools.all")}</a></p>
		<div class="page-head">
			<h1 dir="auto">${tool.name}</h1>
			${
				mayWrite &&
				html`<${Menu} label=${t("tools.actions", { name: tool.name })} items=${[
					tool.discovery_url ? { label: t("tools.refresh"), icon: "retry", onSelect: () => attempt(async () => (setRow(await post(`tools/${tool.id}/refresh/`)), note(t("tools.refreshed")))) } : null,
					tool.access === "own" ? { label: t(tool.shared ? "unshare" : "share"), icon: "user", onSelect: () => attempt(async () => (setRow(await patch(`tools/${tool.id}/`, { shared: !tool.shared })), note(t("saved")))) } : null,
					tool.access === "own" ? { label: t("groups.share"), icon: "user", onSelect: () => setSharing(true) } : null,
					tool.access === "own" ? { label: t("delete"), icon: "trash", isDangerous: true, onSelect: () => setLeaving(true) } : null,
				]} />`
			}
		</div>
		${tool.description && html`<p dir="auto">${tool.description}</p>`}
		<p class="dim small">${[t(/** @type {any} */ (`tools.kind.${tool.kind}`)), tool.discovery_url, tool.has_api_key && t("tools.hasKey"), tool.shared && t("shared"), tool.refreshed_at && t("tools.readAt", { time: time(tool.refreshed_at) })].filter(Boolean).join(" · ")}</p>
		${tool.last_error && html`<p class="failure">${tool.last_error}</p>`}
		${Boolean(tool.warnings.length) && html`<details class="page-part"><summary>${t("tools.warnings", { count: tool.warnings.length })}</summary><ul>${tool.warnings.map((/** @type {string} */ each) => html`<li>${each}</li>`)}</ul></details>`}
		<section class="page-part" aria-labelledby="functions">
			<h2 id="functions">${t("tools.functions")}</h2>
			${!tool.functions.length && html`<p class="dim nothing">${t("tools.noFunctions")}</p>`}
			<ul class="rows">
				${tool.functions.map(
					(/** @type {any} */ each) => html`<li key=${each.name} class="list-row">
						<span class="grow"><strong><code>${each.name}</code></strong><span dir="auto">${each.description}</span><span class="dim small">${[each.read_only && t("tools.readOnly"), each.idempotent && t("tools.idempotent"), each.requires_approval && t("tools.asks")].filter(Boolean).join(" · ")}</span>
							<details><summary>${t("tools.schema")}</summary><pre class="code-line" tabindex="0">${JSON.stringify(each.parameters, null, 2)}</pre></details>
							${mayWrite && html`<${Tick} label=${t("tools.askFirst")} checked=${(tool.options.ask_first ?? []).includes(each.name)} onChecked=${(/** @type {boolean} */ isOn) => mark(each.name, "ask_first", isOn)} aria-label=${`${t("tools.askFirst")}: ${each.name}`} />`}
						</span>
						${mayWrite && html`<${Button} onClick=${() => (setTried(each.name), document.getElementById("try-tool")?.focus())} aria-label=${`${t("tools.try")}: ${each.name}`}>${t("tools.try")}<//>`}
					</li>`,
				)}
			</ul>
		</section>
		${mayWrite && shownTry && html`<${Trial} key=${shownTry} tool=${tool} name=${shownTry} onName=${setTried} onCalled=${calls.refresh} />`}
		<section class="page-part" aria-labelledby="calls">
			<div class="page-part-head"><h2 id="calls">${t("tools.calls")}</h2><${Choice} label=${t("ledger.show")} value=${outcome} onValue=${setOutcome} options=${[["", t("ledger.all")], ["ok", t("tools.outcome.ok")], ["failed", t("tools.outcome.failed")]]} /></div>
			<${Listed} list=${calls} empty=${t("tools.noCalls")}>
				<div class="wide-table" tabindex="0" role="group" aria-labelledby="calls">
					<table class="plain">
						<thead><tr><th scope="col">${t("tools.when")}</th><th scope="col">${t("tools.function")}</th><th scope="col">${t("tools.outcome")}</th><th scope="col" class="align-right">${t("tools.took")}</th></tr></thead>
						<tbody>${calls.rows?.map((call) => html`<tr key=${call.id}><td>${time(call.created_at)}</td><td><code>${call.function}</code>${call.is_test ? ` · ${t("tools.isTest")}` : ""}</td><td>${t(/** @type {any} */ (`tools.outcome.${call.outcome}`))}${call.http_status ? ` · HTTP ${call.http_status}` : ""}${call.detail && html`<br /><span class="error">${call.detail}</span>`}</td><td class="align-right">${duration(call.latency_ms)}</td></tr>`)}</tbody>
					</table>
				</div>
			<//>
		</section>
		${isSharing && html`<${GroupShares} path=${`tools/${tool.id}/`} name=${tool.name} onClose=${() => setSharing(false)} />`}
		${
			isLeaving &&
			html`<${Confirm} title=${t("tools.delete.title")} text=${t("tools.delete.text", { name: tool.name })} yes=${t("delete")} isDangerous=${true} onClose=${() => setLeaving(false)}
				onYes=${() => attempt(async () => (await remove(`tools/${tool.id}/`), note(t("deleted", { name: tool.name })), navigate("/tools")))} />`
		}
	</main>`;
}

/** A beginning for the arguments, by their schema. @param {any} schema */
function draftOf(schema) {
	/** @type {Record<string, unknown>} */
	const draft = {};
	for (const name of schema?.required ?? []) {
		const { type, enum: choices, default: usual } = schema.properties?.[name] ?? {};
		draft[name] = usual ?? choices?.[0] ?? { number: 0, integer: 0, boolean: false, array: [], object: {} }[/** @type {string} */ (type)] ?? "";
	}
	return JSON.stringify(draft, null, 2);
}

/** @param {{ tool: any, name: string, onName: (name: string) => void, onCalled: () => void }} props */
function Trial({ tool, name, onName, onCalled }) {
	const [text, setText] = useState(() => draftOf(tool.functions.find((/** @type {any} */ each) => each.name === name)?.parameters));
	const [trial, setTrial] = useState(/** @type {any} */ (null));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const [isBusy, setBusy] = useState(false);
	const id = useId();
	/** @param {Event} event */
	const call = async (event) => {
		event.preventDefault();
		if (isBusy) return;
		setError(null);
		let given;
		try {
			given = JSON.parse(text || "{}");
		} catch {
			return setError(new Error(t("tools.notJson")));
		}
		setBusy(true);
		try {
			const answer = await post(`tools/${tool.id}/call/`, { function: name, arguments: given });
			setTrial(answer);
			announce(t(answer.result.ok ? "tools.tried" : "tools.triedBadly"));
			onCalled();
		} catch (why) {
			setError(why);
		} finally {
			setBusy(false);
		}
	};
	return html`<section class="page-part" aria-labelledby="try-tool">
		<h2 id="try-tool" tabindex="-1">${t("tools.tryOne")}</h2>
		<p class="dim small">${t("tools.tryOne.about")}</p>
		<form class="form narrow-form" onSubmit=${call}>
			<${Choice} label=${t("tools.function")} value=${name} onValue=${onName} options=${tool.functions.map((/** @type {any} */ each) => [each.name, each.name])} />
			<${Field} as="textarea" rows="6" label=${t("tools.arguments")} value=${text} onValue=${setText} spellcheck=${false} class="code-input" />
			${Boolean(error) && html`<${Failure} error=${error} />`}
			<div><${Button} kind="primary" type="submit" isBusy=${isBusy}>${t("tools.call")}<//></div>
		</form>
		${
			trial &&
			html`<div class="page-part" aria-labelledby=${id} role="region">
				<h3 id=${id}>${t(trial.result.ok ? "tools.tried" : "tools.triedBadly")} <span class="dim small">${duration(trial.latency_ms)}</span></h3>
				<pre class="code-line" tabindex="0" dir="auto">${trial.result.content || trial.result.detail}</pre>
				${trial.exchanges.map((/** @type {any} */ each, /** @type {number} */ i) => html`<details key=${i}><summary>${each.method} ${each.url} → ${each.status ?? each.fault}</summary><pre class="code-line" tabindex="0">${`${each.request_body}\n\n${each.response_body}`.trim()}</pre></details>`)}
			</div>`
		}
	</section>`;
}
