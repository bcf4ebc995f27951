/* The libraries that a person may search, and a new one. */
import { useState } from "preact/hooks";
import { post } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { plainText } from "../app/plain-text.js";
import { navigate } from "../app/router.js";
import { FormDialog, useForm } from "../components/forms.js";
import { Listed, useList } from "../components/lists.js";
import { Button, Field, useTitle } from "../components/ui.js";

export function Page() {
	useTitle(t("libraries.title"));
	const list = useList("libraries/?limit=100");
	const [isNew, setNew] = useState(false);
	return html`<main class="page" id="content" tabindex="-1">
		<div class="page-head">
			<h1>${t("libraries.title")}</h1>
			<${Button} kind="primary" icon="add" onClick=${() => setNew(true)}>${t("libraries.new")}<//>
		</div>
		<p class="dim">${t("libraries.about")}</p>
		<${Listed} list=${list} empty=${t("libraries.none")}>
			<ul class="cards">
				${list.rows?.map(
					(library) => html`<li key=${library.id} class="card">
						<h2><a href=${`/libraries/${library.id}`} dir="auto">${library.name}</a></h2>
						${library.description && html`<p dir="auto">${plainText(library.description)}</p>`}
						<p class="dim small">${t("libraries.chunks", { count: library.chunk_count })}${library.shared ? ` · ${t("shared")}` : ""}${library.default ? ` · ${t("libraries.default")}` : ""}</p>
					</li>`,
				)}
			</ul>
		<//>
		${isNew && html`<${NewLibrary} onClose=${() => setNew(false)} />`}
	</main>`;
}

/** @param {{ onClose: () => void }} props */
function NewLibrary({ onClose }) {
	const form = useForm({ name: "", description: "" }, async (given) => {
		const made = await post("libraries/", given);
		onClose();
		navigate(`/libraries/${made.id}`);
	});
	return html`<${FormDialog} title=${t("libraries.new")} form=${form} yes=${t("create")} onClose=${onClose}>
		<${Field} label=${t("name")} ...${form.field("name")} required maxlength="200" />
		<${Field} as="textarea" rows="3" label=${t("description")} ...${form.field("description")} />
	<//>`;
}
