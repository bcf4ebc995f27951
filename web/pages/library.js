/* One library: search it, add to it, and see what becomes of its documents. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../app/announce.js";
import { patch, post, remove } from "../app/api.js";
import { html } from "../app/html.js";
import { number, t } from "../app/i18n.js";
import { plainText } from "../app/plain-text.js";
import { navigate } from "../app/router.js";
import { clearUploads, filesOf, STAGES, sendAgain, sendFiles, uploads } from "../app/uploads.js";
import { GroupShares } from "../components/group-shares.js";
import { Choice, FormDialog, Tick, useForm } from "../components/forms.js";
import { Listed, useEvery, useList, useRow } from "../components/lists.js";
import { Marked, questionWords } from "../components/marked.js";
import { attempt, Button, Confirm, Failure, Field, Menu, note, useTitle, Waiting, wordsOf } from "../components/ui.js";

const BUSY_MS = 1_500;
const IDLE_MS = 15_000;

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const { row: library, error, refresh, setRow } = useRow(`libraries/${params.id}/`);
	const [status, setStatus] = useState("");
	const documents = useList(`libraries/${params.id}/documents/?limit=100${status && `&status=${status}`}`);
	const imports = useList(`libraries/${params.id}/import/`);
	const [asks, setAsks] = useState(/** @type {"edit" | "share" | "delete" | null} */ (null));
	useTitle(library?.name ?? t("libraries.title"));
	const mine = uploads.value.filter((each) => each.libraryId === params.id);
	const arrived = mine.filter((each) => each.state === "done").length;
	const pending = library ? library.documents.queued + library.documents.running : 0;
	const isImporting = imports.rows?.some((each) => each.status === "queued" || each.status === "running");
	const look = () => Promise.all([refresh(), documents.refresh(), isImporting && imports.refresh()]);
	useEvery(look, pending || isImporting ? BUSY_MS : IDLE_MS);
	useEffect(() => {
		if (arrived) look();
	}, [arrived]);
	const wasPending = useRef(0);
	useEffect(() => {
		if (wasPending.current && !pending && library) announce(t("ledger.allDone", { count: library.documents.ready }));
		wasPending.current = pending;
	}, [pending]);
	if (error && !library) return html`<main class="page" id="content" tabindex="-1"><h1>${t("libraries.title")}</h1><${Failure} error=${error} onAgain=${refresh} /><p><a href="/libraries">${t("libraries.all")}</a></p></main>`;
	if (!library) return html`<main class="page" id="content" tabindex="-1"><h1>${t("libraries.title")}</h1><${Waiting} /></main>`;
	const mayWrite = library.access !== "use";
	const counts = library.documents;
	return html`<main class="page" id="content" tabindex="-1">
		<p class="crumbs"><a href="/libraries">${t("libraries.all")}</a></p>
		<div class="page-head">
			<h1 dir="auto">${library.name}</h1>
			${
				mayWrite &&
				html`<${Menu} label=${t("libraries.actions", { name: library.name })} items=${[
					{ label: t("edit"), icon: "edit", onSelect: () => setAsks("edit") },
					{ label: t("libraries.reindex"), icon: "retry", onSelect: () => attempt(async () => (await post(`libraries/${library.id}/reindex/`), note(t("libraries.reindexing")), look())) },
					library.access === "own" ? { label: t("groups.share"), icon: "user", onSelect: () => setAsks("share") } : null,
					library.access === "own" ? { label: t("delete"), icon: "trash", isDangerous: true, onSelect: () => setAsks("delete") } : null,
				]} />`
			}
		</div>
		${library.description && html`<p dir="auto">${library.description}</p>`}
		<p class="dim">${t("libraries.chunks", { count: library.chunk_count })} · ${t("libraries.model", { name: library.embedding_model })}${library.next_embedding_model ? ` → ${library.next_embedding_model}` : ""}${library.shared ? ` · ${t("shared")}` : ""}</p>
		<${SearchBox} libraryId=${library.id} />
		${mayWrite && html`<${AddBox} libraryId=${library.id} sent=${mine} onAdded=${() => (look(), imports.refresh())} />`}
		<section class="page-part" aria-labelledby="ledger">
			<div class="page-part-head">
				<h2 id="ledger">${t("ledger.title")}</h2>
				<${Choice} label=${t("ledger.show")} value=${status} onValue=${setStatus} options=${[
					["", t("ledger.all")],
					...["queued", "running", "ready", "failed", "cancelled"].map((name) => [name, `${t(/** @type {any} */ (`ledger.${name}`))} (${number(counts[name])})`]),
				]} />
			</div>
			${pending > 0 && html`<p class="dim" role="status">${t("ledger.pending", { count: pending })}</p>`}
			<${Listed} list=${documents} empty=${t("ledger.none")}>
				<ul class="rows">
					${documents.rows?.map((document) => html`<${DocumentRow} key=${document.id} document=${document} mayWrite=${mayWrite} onChanged=${look} />`)}
				</ul>
			<//>
		</section>
		${
			Boolean(imports.rows?.length) &&
			html`<section class="page-part" aria-labelledby="imports">
				<h2 id="imports">${t("imports.title")}</h2>
				<ul class="rows">${imports.rows?.map((each) => html`<${ImportRow} key=${each.id} repository=${each} mayWrite=${mayWrite} onChanged=${() => (imports.refresh(), look())} />`)}</ul>
			</section>`
		}
		${asks === "share" && html`<${GroupShares} path=${`libraries/${library.id}/`} name=${library.name} onClose=${() => setAsks(null)} />`}
		${asks === "edit" && html`<${EditLibrary} library=${library} onClose=${() => setAsks(null)} onSaved=${setRow} />`}
		${
			asks === "delete" &&
			html`<${Confirm} title=${t("libraries.delete.title")} text=${t("libraries.delete.text", { name: library.name })} yes=${t("delete")} isDangerous=${true} onClose=${() => setAsks(null)}
				onYes=${() => attempt(async () => (await remove(`libraries/${library.id}/`), note(t("deleted", { name: library.name })), navigate("/libraries")))} />`
		}
	</main>`;
}

/** @param {{ libraryId: string }} props */
function SearchBox({ libraryId }) {
	const [query, setQuery] = useState("");
	const [found, setFound] = useState(/** @type {any} */ (null));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const [isBusy, setBusy] = useState(false);
	/** @param {Event} event */
	const search = async (event) => {
		event.preventDefault();
		if (!query.trim() || isBusy) return;
		setBusy(true);
		setError(null);
		try {
			const answer = await post(`libraries/${libraryId}/search/`, { query });
			setFound({ ...answer, words: questionWords(query) });
			announce(t("search.found", { count: answer.results.length }));
		} catch (why) {
			setError(why);
		} finally {
			setBusy(false);
		}
	};
	return html`<section class="page-part" aria-labelledby="search-library">
		<h2 id="search-library">${t("search.title")}</h2>
		<form class="inline-form" role="search" aria-labelledby="search-library" onSubmit=${search}>
			<${Field} label=${t("search.question")} value=${query} onValue=${setQuery} type="search" hint=${t("search.hint")} maxlength="2000" />
			<${Button} kind="primary" icon="search" type="submit" isBusy=${isBusy}>${t("search.do")}<//>
		</form>
		${Boolean(error) && html`<${Failure} error=${error} />`}
		${found?.notes.map((/** @type {string} */ each) => html`<p class="dim">${each}</p>`)}
		${found && !found.results.length && html`<p class="dim nothing">${t("search.nothing")}</p>`}
		${
			found?.results.length > 0 &&
			html`<ol class="passages">
				${found.results.map((/** @type {any} */ passage) => html`<${FoundPassage} key=${passage.number} passage=${passage} words=${found.words} libraryId=${libraryId} />`)}
			</ol>`
		}
	</section>`;
}

/** @param {{ passage: any, words: Set<string>, libraryId: string }} props */
function FoundPassage({ passage, words, libraryId }) {
	const percent = Math.round(passage.relevance * 100);
	const ranks = [
		passage.text_rank ? t("search.byWords", { rank: passage.text_rank }) : t("search.notByWords"),
		passage.vector_rank ? t("search.byMeaning", { rank: passage.vector_rank }) : t("search.notByMeaning"),
	];
	return html`<li class="found">
		<h3><a href=${`/libraries/${libraryId}/documents/${passage.document.id}`} dir="auto">${passage.document.path ?? passage.document.name}</a></h3>
		<p class="dim small">${[passage.heading, passage.page && t("answer.page", { page: passage.page })].filter(Boolean).join(" · ")}</p>
		<blockquote dir="auto"><${Marked} text=${plainText(passage.content)} words=${words} /></blockquote>
		<p class="why"><meter min="0" max="100" value=${percent} aria-label=${t("search.relevance")}></meter> <span>${t("search.relevanceOf", { percent: number(passage.relevance, { style: "percent" }) })}</span><span>${ranks.join(" · ")}</span></p>
	</li>`;
}

/** @param {{ libraryId: string, sent: import("../app/uploads.js").Sent[], onAdded: () => void }} props */
function AddBox({ libraryId, sent, onAdded }) {
	const [isOver, setOver] = useState(false);
	const [asks, setAsks] = useState(/** @type {"address" | "text" | "git" | null} */ (null));
	const files = useRef(/** @type {HTMLInputElement | null} */ (null));
	const folder = useRef(/** @type {HTMLInputElement | null} */ (null));
	/** @param {any} event */
	const picked = (event) => {
		const chosen = [...event.currentTarget.files].map((file) => ({ file, path: file.webkitRelativePath ?? "" }));
		event.currentTarget.value = "";
		if (chosen.length) sendFiles(libraryId, chosen);
	};
	/** @param {DragEvent} event */
	const dropped = async (event) => {
		event.preventDefault();
		setOver(false);
		if (!event.dataTransfer) return;
		const found = await filesOf(event.dataTransfer);
		if (found.length) sendFiles(libraryId, found);
	};
	const done = sent.filter((each) => each.state === "done").length;
	const failed = sent.filter((each) => each.state === "failed");
	const isOn = done + failed.length < sent.length;
	const share = sent.reduce((sum, each) => sum + each.share, 0) / Math.max(1, sent.length);
	useEffect(() => {
		if (sent.length && !isOn) announce(t("add.sent", { count: done }));
	}, [isOn]);
	return html`<section class="page-part" aria-labelledby="add">
		<h2 id="add">${t("add.title")}</h2>
		<div class=${`drop-zone ${isOver ? "over" : ""}`} onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${dropped}>
			<p class="dim">${t("add.drop")}</p>
			<p class="buttons">
				<${Button} icon="document" onClick=${() => files.current?.click()}>${t("add.files")}<//>
				<${Button} icon="archive" onClick=${() => folder.current?.click()}>${t("add.folder")}<//>
				<${Button} icon="search" onClick=${() => setAsks("address")}>${t("add.address")}<//>
				<${Button} icon="edit" onClick=${() => setAsks("text")}>${t("add.text")}<//>
				<${Button} icon="tools" onClick=${() => setAsks("git")}>${t("add.git")}<//>
			</p>
			<input ref=${files} type="file" multiple hidden aria-label=${t("add.files")} onChange=${picked} />
			<input ref=${folder} type="file" webkitdirectory hidden aria-label=${t("add.folder")} onChange=${picked} />
		</div>
		${
			sent.length > 0 &&
			html`<div class="sent">
				<p><span>${t("add.progress", { done, count: sent.length })}</span>${!isOn && html` <button type="button" class="link" onClick=${() => clearUploads(libraryId)}>${t("dismiss")}</button>`}</p>
				${isOn && html`<progress max="1" value=${share} aria-label=${t("add.progress", { done, count: sent.length })}></progress>`}
				${
					failed.length > 0 &&
					html`<ul class="rows">${failed.map(
						(each) => html`<li key=${each.id} class="list-row"><span class="grow"><strong dir="auto">${each.path || each.file.name}</strong><span class="error">${wordsOf(each.error)}</span></span><${Button} icon="retry" onClick=${() => sendAgain(each)} aria-label=${`${t("again")}: ${each.file.name}`}>${t("again")}<//></li>`,
					)}</ul>`
				}
			</div>`
		}
		${asks && html`<${AddDialog} kind=${asks} libraryId=${libraryId} onClose=${() => setAsks(null)} onAdded=${onAdded} />`}
	</section>`;
}

/** What is asked for, by kind: its fields, and where it is sent. */
const FORMS = {
	address: { at: "documents/", fields: [["url", "add.url", "url", true], ["name", "name", "text", false]] },
	text: { at: "documents/", fields: [["name", "name", "text", true], ["text", "add.content", "textarea", true]] },
	git: { at: "import/", fields: [["git_url", "add.gitUrl", "url", true], ["ref", "add.ref", "text", false], ["token", "add.token", "password", false], ["include", "add.include", "text", false], ["exclude", "add.exclude", "text", false]] },
};

/** @param {{ kind: "address" | "text" | "git", libraryId: string, onClose: () => void, onAdded: () => void }} props */
function AddDialog({ kind, libraryId, onClose, onAdded }) {
	const { at, fields } = FORMS[kind];
	const form = useForm({}, async (given) => {
		/** @type {Record<string, unknown>} */
		const body = Object.fromEntries(Object.entries(given).filter(([, value]) => value.trim()));
		for (const name of ["include", "exclude"]) if (body[name]) body[name] = String(body[name]).split(",").map((each) => each.trim()).filter(Boolean);
		await post(`libraries/${libraryId}/${at}`, body);
		note(t(kind === "git" ? "add.importing" : "add.added"));
		onAdded();
		onClose();
	});
	return html`<${FormDialog} title=${t(/** @type {any} */ (`add.${kind}`))} form=${form} yes=${t("add.do")} onClose=${onClose} class="">
		${fields.map(
			([name, words, type, isNeeded]) => html`<${Field}
				key=${name}
				label=${t(/** @type {any} */ (words))}
				hint=${name === "include" ? t("add.patterns") : undefined}
				...${form.field(String(name))}
				required=${isNeeded}
				autocomplete="off"
				...${type === "textarea" ? { as: "textarea", rows: 10 } : { type }}
			/>`,
		)}
	<//>`;
}

/** How far a document is, from 0 to 1. @param {any} document */
function shareOf(document) {
	const place = STAGES.indexOf(document.stage) / (STAGES.length - 1);
	const { chunks, embedded } = document.progress;
	return document.stage === "chunked" && chunks ? place + (embedded / chunks) * 0.25 : place;
}

/** @param {{ document: any, mayWrite: boolean, onChanged: () => void }} props */
function DocumentRow({ document, mayWrite, onChanged }) {
	const [isLeaving, setLeaving] = useState(false);
	const isPending = document.status === "queued" || document.status === "running";
	/** @param {string} verb @param {string} done */
	const act = (verb, done) => () => attempt(async () => (await post(`documents/${document.id}/${verb}/`), note(done), onChanged()));
	const name = document.path ?? document.name;
	const status = t(/** @type {any} */ (`ledger.${document.status}`));
	return html`<li class=${`list-row ${document.status}`}>
		<span class="grow">
			<a href=${`/libraries/${document.library_id}/documents/${document.id}`} dir="auto">${name}</a>
			<span class="dim small"><span class=${`state ${document.status}`}>${status}</span>${isPending ? ` · ${t(/** @type {any} */ (`stage.${document.stage}`))}` : ""}${document.progress.chunks ? ` · ${t("ledger.chunks", { count: document.progress.chunks })}` : ""}${document.attempt > 1 ? ` · ${t("ledger.attempt", { count: document.attempt })}` : ""}</span>
			${isPending && html`<progress max="1" value=${shareOf(document)} aria-label=${t("ledger.progress", { name })}></progress>`}
			${document.error && html`<span class=${document.status === "failed" ? "error" : "dim small"}>${document.error}</span>`}
		</span>
		${mayWrite && document.status === "failed" && html`<${Button} icon="retry" onClick=${act("retry", t("ledger.retrying"))} aria-label=${`${t("again")}: ${name}`}>${t("again")}<//>`}
		${
			mayWrite &&
			html`<${Menu} label=${t("ledger.actions", { name })} items=${[
				["failed", "cancelled"].includes(document.status) || document.not_before ? { label: t("again"), icon: "retry", onSelect: act("retry", t("ledger.retrying")) } : null,
				isPending ? { label: t("ledger.cancel"), icon: "stop", onSelect: act("cancel", t("ledger.cancelling")) } : null,
				document.source ? { label: t("ledger.refresh"), icon: "export", onSelect: act("refresh", t("ledger.refreshing")) } : null,
				{ label: t("delete"), icon: "trash", isDangerous: true, onSelect: () => setLeaving(true) },
			]} />`
		}
		${
			isLeaving &&
			html`<${Confirm} title=${t("ledger.delete.title")} text=${t("ledger.delete.text", { name })} yes=${t("delete")} isDangerous=${true} onClose=${() => setLeaving(false)}
				onYes=${() => attempt(async () => (await remove(`documents/${document.id}/`), note(t("deleted", { name })), onChanged()))} />`
		}
	</li>`;
}

/** @param {{ repository: any, mayWrite: boolean, onChanged: () => void }} props */
function ImportRow({ repository, mayWrite, onChanged }) {
	const { progress } = repository;
	const [isLeaving, setLeaving] = useState(false);
	const told = ["new", "changed", "unchanged", "removed"].filter((name) => progress[name]).map((name) => t(/** @type {any} */ (`imports.${name}`), { count: progress[name] }));
	const isPending = repository.status === "queued" || repository.status === "running";
	return html`<li class=${`list-row ${repository.status}`}>
		<span class="grow">
			<span dir="auto">${repository.git_url}${repository.ref && ` (${repository.ref})`}</span>
			<span class="dim small"><span class=${`state ${repository.status}`}>${t(/** @type {any} */ (`ledger.${repository.status}`))}</span>${repository.commit && ` · ${repository.commit.slice(0, 10)}`}${told.length ? ` · ${told.join(", ")}` : ""}</span>
			${repository.error && html`<span class="error">${repository.error}</span>`}
		</span>
		${
			mayWrite &&
			html`<${Menu} label=${t("imports.actions", { name: repository.git_url })} items=${[
				isPending ? { label: t("ledger.cancel"), icon: "stop", onSelect: () => attempt(async () => (await post(`imports/${repository.id}/cancel/`), onChanged())) } : { label: t("imports.again"), icon: "retry", onSelect: () => attempt(async () => (await post(`libraries/${repository.library_id}/import/`, { git_url: repository.git_url, ref: repository.ref }), note(t("add.importing")), onChanged())) },
				{ label: t("imports.forget"), icon: "trash", isDangerous: true, onSelect: () => setLeaving(true) },
			]} />`
		}
		${
			isLeaving &&
			html`<${Confirm} title=${t("imports.forget.title")} text=${t("libraries.delete.text", { name: repository.git_url })} yes=${t("delete")} isDangerous=${true} onClose=${() => setLeaving(false)}
				onYes=${() => attempt(async () => (await remove(`imports/${repository.id}/`), note(t("imports.forgotten")), onChanged()))} />`
		}
	</li>`;
}

/** @param {{ library: any, onClose: () => void, onSaved: (library: any) => void }} props */
function EditLibrary({ library, onClose, onSaved }) {
	const form = useForm({ name: library.name, description: library.description, shared: library.shared, default: library.default }, async (given) => {
		const changed = Object.fromEntries(Object.entries(given).filter(([name, value]) => library[name] !== value));
		onSaved(await patch(`libraries/${library.id}/`, changed));
		note(t("saved"));
		onClose();
	});
	return html`<${FormDialog} title=${t("edit")} form=${form} yes=${t("save")} onClose=${onClose}>
		<${Field} label=${t("name")} ...${form.field("name")} required />
		<${Field} as="textarea" rows="3" label=${t("description")} ...${form.field("description")} />
		${library.access === "own" && html`<${Tick} label=${t("share")} hint=${t("libraries.share.hint")} checked=${form.given.shared} onChecked=${form.set("shared")} />`}
		<${Tick} label=${t("libraries.default")} hint=${t("libraries.default.hint")} checked=${form.given.default} onChecked=${form.set("default")} />
	<//>`;
}
