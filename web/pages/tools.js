/* The services that assistants may call, and a new one. */
import { useState } from "preact/hooks";
import { post } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { Choice, FormDialog, Tick, useForm } from "../components/forms.js";
import { Listed, useList } from "../components/lists.js";
import { Button, Field, useTitle } from "../components/ui.js";

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
	const form = useForm({ kind: "mcp", discovery_url: "", document: "", api_key: "", name: "", isPasted: false }, async (given) => {
		/** @type {Record<string, string>} */
		const body = { kind: given.kind, [isPasted ? "document" : "discovery_url"]: isPasted ? given.document : given.discovery_url };
		if (given.api_key) body.api_key = given.api_key;
		if (given.name.trim()) body.name = given.name;
		const made = await post("tools/", body);
		onClose();
		navigate(`/tools/${made.id}`);
	});
	const { given, field, set } = form;
	const isPasted = given.kind === "openapi" && given.isPasted;
	return html`<${FormDialog} title=${t("tools.connect")} form=${form} yes=${t("tools.connect.do")} onClose=${onClose} class="">
		<${Choice} label=${t("tools.kind")} value=${given.kind} onValue=${set("kind")} options=${["mcp", "openapi", "discovery"].map((kind) => [kind, t(/** @type {any} */ (`tools.kind.${kind}`))])} />
		${given.kind === "openapi" && html`<${Tick} label=${t("tools.paste")} checked=${given.isPasted} onChecked=${set("isPasted")} />`}
		${isPasted ? html`<${Field} as="textarea" rows="10" label=${t("tools.document")} ...${field("document")} required />` : html`<${Field} type="url" label=${t("tools.address")} hint=${t(/** @type {any} */ (`tools.address.${given.kind}`))} ...${field("discovery_url")} required />`}
		<${Field} type="password" label=${t("tools.key")} hint=${t("tools.key.hint")} ...${field("api_key")} autocomplete="off" />
		<${Field} label=${t("tools.name")} hint=${t("tools.name.hint")} ...${field("name")} />
	<//>`;
}
