/* The services that assistants may call, and a new one. */
import { useState } from "preact/hooks";
import { post } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { Choice, Listed, Tick, useComplaints, useList } from "../components/lists.js";
import { Button, Dialog, Failure, Field, useTitle } from "../components/ui.js";

export function Page() {
	useTitle(t("tools.title"));
	const list = useList("tools/?limit=100");
	const [isNew, setNew] = useState(false);
	return html`<main class="page" id="content" tabindex="-1">
		<div class="page-head">
			<h1>${t("tools.title")}</h1>
			<${Button} kind="primary" icon="add" onClick=${() => setNew(true)}>${t("tools.connect")}<//>
		</div>
		<p class="dim">${t("tools.about")}</p>
		<${Listed} list=${list} empty=${t("tools.none")}>
			<ul class="cards">
				${list.rows?.map(
					(tool) => html`<li key=${tool.id} class="card">
						<h2><a href=${`/tools/${tool.id}`} dir="auto">${tool.name}</a></h2>
						${tool.description && html`<p dir="auto">${tool.description}</p>`}
						<p class="dim small">${t(/** @type {any} */ (`tools.kind.${tool.kind}`))} · ${t("tools.functions.count", { count: tool.function_names.length })}${tool.shared ? ` · ${t("shared")}` : ""}</p>
						${tool.last_error && html`<p class="error small">${tool.last_error}</p>`}
					</li>`,
				)}
			</ul>
		<//>
		${isNew && html`<${Connect} onClose=${() => setNew(false)} />`}
	</main>`;
}

/** @param {{ onClose: () => void }} props */
function Connect({ onClose }) {
	const [given, setGiven] = useState({ kind: "mcp", discovery_url: "", document: "", api_key: "", name: "", isPasted: false });
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const [isBusy, setBusy] = useState(false);
	const said = useComplaints(error);
	/** @param {string} name */
	const field = (name) => ({ value: /** @type {any} */ (given)[name], onValue: (/** @type {string} */ value) => setGiven({ ...given, [name]: value }), error: said(name) });
	const isPasted = given.kind === "openapi" && given.isPasted;
	/** @param {Event} event */
	const connect = async (event) => {
		event.preventDefault();
		if (isBusy) return;
		setBusy(true);
		/** @type {Record<string, string>} */
		const body = { kind: given.kind, [isPasted ? "document" : "discovery_url"]: isPasted ? given.document : given.discovery_url };
		if (given.api_key) body.api_key = given.api_key;
		if (given.name.trim()) body.name = given.name;
		try {
			const made = await post("tools/", body);
			onClose();
			navigate(`/tools/${made.id}`);
		} catch (why) {
			setError(why);
			setBusy(false);
		}
	};
	return html`<${Dialog} title=${t("tools.connect")} onClose=${onClose}>
		<form class="form" onSubmit=${connect}>
			<${Choice} label=${t("tools.kind")} value=${given.kind} onValue=${(/** @type {string} */ kind) => setGiven({ ...given, kind })} options=${["mcp", "openapi", "discovery"].map((kind) => [kind, t(/** @type {any} */ (`tools.kind.${kind}`))])} />
			${given.kind === "openapi" && html`<${Tick} label=${t("tools.paste")} checked=${given.isPasted} onChecked=${(/** @type {boolean} */ value) => setGiven({ ...given, isPasted: value })} />`}
			${isPasted ? html`<${Field} as="textarea" rows="10" label=${t("tools.document")} ...${field("document")} required />` : html`<${Field} type="url" label=${t("tools.address")} hint=${t(/** @type {any} */ (`tools.address.${given.kind}`))} ...${field("discovery_url")} required />`}
			<${Field} type="password" label=${t("tools.key")} hint=${t("tools.key.hint")} ...${field("api_key")} autocomplete="off" />
			<${Field} label=${t("tools.name")} hint=${t("tools.name.hint")} ...${field("name")} />
			<${Failure} error=${said.rest()} />
			<div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit" isBusy=${isBusy}>${t("tools.connect.do")}<//></div>
		</form>
	<//>`;
}
