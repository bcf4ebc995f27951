/* What Amber remembers of a person: found, corrected, forgotten, and where each came from. */
import { useEffect, useState } from "preact/hooks";
import { get, patch, post, remove } from "../app/api.js";
import { html } from "../app/html.js";
import { date, t } from "../app/i18n.js";
import { FormDialog, useForm } from "../components/forms.js";
import { Listed, useList } from "../components/lists.js";
import { attempt, Button, Confirm, Dialog, Field, Menu, note, useTitle, Waiting } from "../components/ui.js";

export function Page() {
	useTitle(t("memories.title"));
	const list = useList("memories/?limit=50");
	const [words, setWords] = useState("");
	const [found, setFound] = useState(/** @type {any[] | null} */ (null));
	const [open, setOpen] = useState(/** @type {{ what: "edit" | "new" | "sources" | "forget", memory: any } | null} */ (null));
	const [isForgettingAll, setForgettingAll] = useState(false);
	const rows = found ?? list.rows;
	/** @param {Event} event */
	const search = (event) => {
		event.preventDefault();
		if (!words.trim()) return setFound(null);
		return attempt(async () => setFound((await post("memories/search/", { query: words })).results.map((/** @type {any} */ each) => each.memory)));
	};
	const again = () => (setFound(null), setWords(""), list.refresh());
	return html`<main class="page" id="content" tabindex="-1">
		<div class="page-head">
			<h1>${t("memories.title")}</h1>
			<div class="buttons">
				<${Button} kind="primary" icon="add" onClick=${() => setOpen({ what: "new", memory: { content: "" } })}>${t("memories.new")}<//>
				<${Menu} label=${t("memories.actions")} items=${[
					{ label: t("memories.export"), icon: "export", onSelect: () => location.assign("/api/v1/memories/export/") },
					{ label: t("memories.forgetAll"), icon: "trash", isDangerous: true, onSelect: () => setForgettingAll(true) },
				]} />
			</div>
		</div>
		<p class="dim">${t("memories.about")}</p>
		<form class="inline-form" role="search" onSubmit=${search}>
			<${Field} label=${t("memories.search")} type="search" value=${words} onValue=${setWords} />
			<${Button} icon="search" type="submit">${t("search.do")}<//>
			${found && html`<${Button} kind="quiet" onClick=${again}>${t("memories.showAll")}<//>`}
		</form>
		<${Listed} list=${found ? { ...list, rows, more: null } : list} empty=${t(found ? "memories.nothing" : "memories.none")}>
			<ul class="rows">
				${rows?.map(
					(memory) => html`<li key=${memory.id} class="list-row">
						<span class="grow"><span dir="auto">${memory.content}</span><span class="dim small">${date(memory.created_at)}${memory.superseded_by ? ` · ${t("memories.superseded")}` : ""}</span></span>
						<${Button} kind="quiet" onClick=${() => setOpen({ what: "sources", memory })} aria-label=${`${t("memories.sources")}: ${memory.content}`}>${t("memories.sources")}<//>
						<${Menu} label=${t("memories.actionsOf", { content: memory.content })} items=${[
							{ label: t("edit"), icon: "edit", onSelect: () => setOpen({ what: "edit", memory }) },
							{ label: t("memories.forget"), icon: "trash", isDangerous: true, onSelect: () => setOpen({ what: "forget", memory }) },
						]} />
					</li>`,
				)}
			</ul>
		<//>
		${open?.what === "sources" && html`<${Sources} memory=${open.memory} onClose=${() => setOpen(null)} />`}
		${(open?.what === "edit" || open?.what === "new") && html`<${Edit} memory=${open.memory} onClose=${() => setOpen(null)} onSaved=${again} />`}
		${open?.what === "forget" && html`<${Confirm} title=${t("memories.forget.title")} text=${open.memory.content} yes=${t("memories.forget")} isDangerous=${true} onClose=${() => setOpen(null)} onYes=${() => attempt(async () => (await remove(`memories/${open.memory.id}/`), note(t("memories.forgotten")), again()))} />`}
		${isForgettingAll && html`<${Confirm} title=${t("memories.forgetAll")} text=${t("memories.forgetAll.text")} yes=${t("memories.forgetAll")} isDangerous=${true} onClose=${() => setForgettingAll(false)} onYes=${() => attempt(async () => (await remove("memories/?confirm=true"), note(t("memories.forgotten")), again()))} />`}
	</main>`;
}

/** @param {{ memory: any, onClose: () => void, onSaved: () => void }} props */
function Edit({ memory, onClose, onSaved }) {
	const form = useForm({ content: memory.content }, async (given) => {
		await (memory.id ? patch(`memories/${memory.id}/`, given) : post("memories/", given));
		note(t("saved"));
		onSaved();
		onClose();
	});
	return html`<${FormDialog} title=${t(memory.id ? "memories.edit" : "memories.new")} form=${form} yes=${t("save")} onClose=${onClose}>
		<${Field} as="textarea" rows="4" label=${t("memories.fact")} hint=${t("memories.fact.hint")} ...${form.field("content")} required dir="auto" />
	<//>`;
}

/** @param {{ memory: any, onClose: () => void }} props */
function Sources({ memory, onClose }) {
	const [found, setFound] = useState(/** @type {any[] | null} */ (null));
	useEffect(() => void attempt(async () => setFound((await get(`memories/${memory.id}/sources/`)).results)), [memory.id]);
	return html`<${Dialog} title=${t("memories.sources.title")} onClose=${onClose}>
		<p dir="auto"><strong>${memory.content}</strong></p>
		${!found && html`<${Waiting} />`}
		${found && !found.length && html`<p class="dim">${t("memories.noSources")}</p>`}
		${found?.map((each) => html`<blockquote key=${each.message.id} class="found" dir="auto"><p>${each.message.content}</p><p class="small"><a href=${`/chats/${each.chat.id}?message=${each.message.id}`} onClick=${onClose}>${each.chat.name || t("chats.unnamed")}</a> <span class="dim">${date(each.message.created_at)}</span></p></blockquote>`)}
	<//>`;
}
