/* The assistants that a person may use: to talk to, and to change where they may. */
import { useState } from "preact/hooks";
import { makeUsual } from "../app/assistants.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { plainText } from "../app/plain-text.js";
import { navigate } from "../app/router.js";
import { Listed, useList } from "../components/lists.js";
import { Button, Field, Icon, useTitle } from "../components/ui.js";

export function Page() {
	useTitle(t("assistants.title"));
	const [words, setWords] = useState("");
	const list = useList(`assistants/?limit=100${words.trim() && `&q=${encodeURIComponent(words.trim())}`}`);
	/** @param {string} id */
	const talk = (id) => {
		makeUsual(id);
		navigate("/");
	};
	return html`<main class="page" id="content" tabindex="-1">
		<div class="page-head">
			<h1>${t("assistants.title")}</h1>
			<a class="button primary" href="/assistants/new"><${Icon} name="add" /><span>${t("assistants.new")}</span></a>
		</div>
		<p class="dim">${t("assistants.about")}</p>
		<div class="form"><${Field} label=${t("assistants.search")} type="search" value=${words} onValue=${setWords} maxlength="200" /></div>
		<${Listed} list=${list} empty=${t(words ? "assistants.nothing" : "assistants.none")}>
			<ul class="cards">
				${list.rows?.map(
					(each) => html`<li key=${each.id} class="card">
						<h2 dir="auto">${each.name}</h2>
						${each.description && html`<p dir="auto">${plainText(each.description)}</p>`}
						<p class="dim small">${[each.model && each.model !== "auto" ? each.model : t("assistants.auto"), each.shared && t("shared"), each.public && t("assistants.public")].filter(Boolean).join(" · ")}</p>
						<p class="buttons">
							<${Button} kind="primary" onClick=${() => talk(each.id)} aria-label=${`${t("assistants.talk")}: ${each.name}`}>${t("assistants.talk")}<//>
							${each.access !== "use" && html`<a class="button" href=${`/assistants/${each.id}`} aria-label=${`${t("edit")}: ${each.name}`}>${t("edit")}</a>`}
						</p>
					</li>`,
				)}
			</ul>
		<//>
	</main>`;
}
