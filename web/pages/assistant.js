/* The editor of an assistant, with a place beside it to try what it says. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../app/announce.js";
import { patch, post, remove, streamUntil } from "../app/api.js";
import { loadAssistants } from "../app/assistants.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { keep, recall } from "../app/storage.js";
import { GroupShares } from "../components/group-shares.js";
import { Choice, FormDialog, Tick, useComplaints, useForm } from "../components/forms.js";
import { useList, useRow } from "../components/lists.js";
import { Markdown } from "../components/markdown.js";
import { attempt, Button, Confirm, copyText, Failure, Field, IconButton, isSending, Menu, note, useTitle, Waiting, wordsOf } from "../components/ui.js";
import { fold } from "../shared/fold.js";
import { follow } from "../shared/follow.js";

const BLANK = {
	name: "", description: "", greeting: "", suggested_questions: [], prompt: "", model: "", temperature: null, top_p: null, library_id: null, shared: false, access: "own",
	public: false, public_origins: [], guest_files: false, disable_default_prompt: false, disable_web_browsing: false, disable_memory: false,
	enable_memory_for_assistant_api: false, untrusted_calls: "ask",
};

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const isNew = params.id === "new";
	const { row, error, refresh, setRow } = useRow(isNew ? null : `assistants/${params.id}/`);
	useTitle(row?.name ?? t("assistants.new"));
	const saved = isNew ? BLANK : row;
	return html`<main class="page" id="content" tabindex="-1">
		${
			saved
				? html`<${Editor} key=${params.id} saved=${saved} isNew=${isNew} onSaved=${setRow} />`
				: html`<h1>${t("assistants.title")}</h1>${error ? html`<${Failure} error=${error} onAgain=${refresh} /><p><a href="/assistants">${t("assistants.all")}</a></p>` : html`<${Waiting} />`}`
		}
	</main>`;
}

/** Lines as they are sent; while they are written, an empty one is where the next begins. @param {string[]} lines */
const trimmed = (lines) => lines.map((each) => each.trim()).filter(Boolean);

/** @param {{ saved: any, isNew: boolean, onSaved: (row: any) => void }} props */
function Editor({ saved, isNew, onSaved }) {
	// What was changed and not saved is there again, whichever way the page was left.
	const draft = `draft.assistant.${saved.id ?? "new"}`;
	const [given, setGiven] = useState(() => ({ ...saved, ...recall(draft, {}) }));
	const saving = useRef(false);
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const [isLeaving, setLeaving] = useState(false);
	const [isSharing, setSharing] = useState(false);
	const models = useList("models/");
	const libraries = useList("libraries/?limit=200");
	const said = useComplaints(error);
	const mayWrite = saved.access !== "use";
	/** @param {any} given */
	const changesOf = (given) => {
		const sent = { ...given, suggested_questions: trimmed(given.suggested_questions), public_origins: trimmed(given.public_origins) };
		return Object.fromEntries(Object.entries(sent).filter(([name, value]) => JSON.stringify(saved[name]) !== JSON.stringify(value)));
	};
	const changed = changesOf(given);
	const isChanged = Object.keys(changed).length > 0;
	/** @param {any} fields */
	const change = (fields) => {
		const next = { ...given, ...fields };
		setGiven(next);
		keep(draft, Object.keys(changesOf(next)).length ? changesOf(next) : null);
	};
	useEffect(() => {
		/** @param {BeforeUnloadEvent} event */
		const ask = (event) => event.preventDefault();
		if (isChanged) addEventListener("beforeunload", ask);
		return () => removeEventListener("beforeunload", ask);
	}, [isChanged]);
	/** @param {string} name */
	const field = (name) => ({ value: given[name] ?? "", onValue: (/** @type {string} */ value) => change({ [name]: value }), error: said(name), readonly: !mayWrite });
	/** @param {string} name */
	const figure = (name) => ({ ...field(name), type: "number", step: "0.1", onValue: (/** @type {string} */ value) => change({ [name]: value === "" ? null : Number(value) }) });
	/** @param {string} name @param {boolean} [isTurned] the field says what is off */
	const tick = (name, isTurned = false) => ({ checked: given[name] !== isTurned, onChecked: (/** @type {boolean} */ value) => change({ [name]: value !== isTurned }), disabled: !mayWrite });
	const save = async () => {
		if (saving.current) return null;
		saving.current = true;
		try {
			const row = isNew ? await post("assistants/", changed) : isChanged ? await patch(`assistants/${saved.id}/`, changed) : saved;
			setError(null);
			keep(draft, null);
			setGiven(row);
			onSaved(row);
			loadAssistants().catch(() => {});
			return row;
		} catch (why) {
			setError(why);
			announce(wordsOf(why));
			return null;
		} finally {
			saving.current = false;
		}
	};
	/** @param {Event} event */
	const submit = async (event) => {
		event.preventDefault();
		const row = await save();
		if (!row) return;
		note(t("saved"));
		if (isNew) navigate(`/assistants/${row.id}`, { replace: true });
	};
	return html`<p class="crumbs"><a href="/assistants">${t("assistants.all")}</a></p>
		<div class="page-head">
			<h1 dir="auto">${isNew ? t("assistants.new") : saved.name}</h1>
			${!isNew && saved.access === "own" && html`<${Menu} label=${t("assistants.actions", { name: saved.name })} items=${[
				{ label: t("groups.share"), icon: "user", onSelect: () => setSharing(true) },
				{ label: t("delete"), icon: "trash", isDangerous: true, onSelect: () => setLeaving(true) },
			]} />`}
		</div>
		<div class="two-columns">
			<form onSubmit=${submit} aria-label=${t("assistants.form")}>
				<fieldset>
					<legend>${t("assistants.who")}</legend>
					<${Field} label=${t("name")} ...${field("name")} required maxlength="200" />
					<${Field} as="textarea" rows="2" label=${t("description")} hint=${t("assistants.description.hint")} ...${field("description")} maxlength="2000" />
					<${Field} as="textarea" rows="9" label=${t("assistants.prompt")} hint=${t("assistants.prompt.hint")} ...${field("prompt")} dir="auto" />
				</fieldset>
				<fieldset>
					<legend>${t("assistants.model")}</legend>
					<${Choice} label=${t("assistants.model")} value=${given.model || "auto"} onValue=${(/** @type {string} */ model) => change({ model })} disabled=${!mayWrite} options=${[["auto", t("assistants.auto")], ...(models.rows ?? []).filter((each) => each.alias !== "auto").map((each) => [each.alias, each.alias]), ...(given.model && given.model !== "auto" && !models.rows?.some((each) => each.alias === given.model) ? [[given.model, given.model]] : [])]} />
					<div class="pair">
						<${Field} label=${t("assistants.temperature")} hint=${t("assistants.sampling.hint")} min="0" max="2" ...${figure("temperature")} />
						<${Field} label=${t("assistants.topP")} min="0" max="1" ...${figure("top_p")} />
					</div>
				</fieldset>
				<fieldset>
					<legend>${t("assistants.knows")}</legend>
					<${Choice} label=${t("assistants.library")} value=${given.library_id ?? ""} onValue=${(/** @type {string} */ id) => change({ library_id: id || null })} disabled=${!mayWrite} options=${[["", t("assistants.noLibrary")], ...(libraries.rows ?? []).map((each) => [each.id, each.name])]} />
					<${Tick} label=${t("assistants.memory")} hint=${t("assistants.memory.hint")} ...${tick("disable_memory", true)} />
					<${Tick} label=${t("assistants.web")} ...${tick("disable_web_browsing", true)} />
					<${Tick} label=${t("assistants.defaultPrompt")} ...${tick("disable_default_prompt", true)} />
				</fieldset>
				<fieldset>
					<legend>${t("assistants.emptyChat")}</legend>
					<${Field} as="textarea" rows="2" label=${t("assistants.greeting")} hint=${t("assistants.greeting.hint")} ...${field("greeting")} maxlength="2000" dir="auto" />
					<${Field} as="textarea" rows="3" label=${t("assistants.suggested")} hint=${t("assistants.suggested.hint")} value=${given.suggested_questions.join("\n")} onValue=${(/** @type {string} */ text) => change({ suggested_questions: text.split("\n") })} error=${said("suggested_questions")} readonly=${!mayWrite} dir="auto" />
				</fieldset>
				<fieldset>
					<legend>${t("assistants.untrusted")}</legend>
					<${Choice} label=${t("assistants.untrusted.label")} value=${given.untrusted_calls} onValue=${(/** @type {string} */ value) => change({ untrusted_calls: value })} disabled=${!mayWrite} options=${["ask", "refuse", "allow"].map((name) => [name, t(/** @type {any} */ (`assistants.untrusted.${name}`))])} />
				</fieldset>
				${
					saved.access === "own" &&
					html`<fieldset>
						<legend>${t("assistants.sharing")}</legend>
						<${Tick} label=${t("share")} hint=${t("assistants.share.hint")} ...${tick("shared")} />
						<${Tick} label=${t("assistants.public")} hint=${t("assistants.public.hint")} ...${tick("public")} />
						${
							given.public &&
							html`<${Tick} label=${t("assistants.guestFiles")} ...${tick("guest_files")} />
								<${Tick} label=${t("assistants.guestMemory")} ...${tick("enable_memory_for_assistant_api")} />
								<${Field} as="textarea" rows="3" label=${t("assistants.origins")} hint=${t("assistants.origins.hint")} value=${given.public_origins.join("\n")} onValue=${(/** @type {string} */ text) => change({ public_origins: text.split("\n") })} error=${said("public_origins")} />`
						}
						${saved.public && html`<${Embed} id=${saved.id} />`}
					</fieldset>`
				}
				<${Failure} error=${said.rest()} />
				${mayWrite && html`<div class="save-bar"><${Button} kind="primary" type="submit" disabled=${!isChanged && !isNew}>${t("save")}<//>${isChanged && html`<span class="dim">${t("unsaved")}</span><${Button} kind="quiet" onClick=${() => (change(saved), setError(null), document.getElementById("content")?.focus())}>${t("discard")}<//>`}</div>`}
			</form>
			<div>
				<${TryOut} onSave=${save} isNew=${isNew} id=${saved.id} isChanged=${isChanged} />
				${!isNew && html`<${BoundTools} id=${saved.id} mayWrite=${mayWrite} /><${Scenes} id=${saved.id} mayWrite=${mayWrite} />`}
			</div>
		</div>
		${isSharing && html`<${GroupShares} path=${`assistants/${saved.id}/`} name=${saved.name} onClose=${() => setSharing(false)} />`}
		${
			isLeaving &&
			html`<${Confirm} title=${t("assistants.delete.title")} text=${t("assistants.delete.text", { name: saved.name })} yes=${t("delete")} isDangerous=${true} onClose=${() => setLeaving(false)}
				onYes=${() => attempt(async () => (await remove(`assistants/${saved.id}/`), loadAssistants().catch(() => {}), note(t("deleted", { name: saved.name })), navigate("/assistants")))} />`
		}`;
}

/** @param {{ id: string }} props */
function Embed({ id }) {
	const code = `<script src="${location.origin}/static/amber-widget.js"\n        data-assistant="${id}" async></script>`;
	return html`<div class="field">
		<span class="field-label">${t("assistants.embed")}</span>
		<code class="code-line" tabindex="0">${code}</code>
		<p><${Button} icon="copy" onClick=${() => copyText(code)}>${t("copy")}<//></p>
	</div>`;
}

/**
 * Questions to the assistant as it is now; what is not saved yet is saved first.
 * @param {{ onSave: () => Promise<any>, isNew: boolean, id: string, isChanged: boolean }} props
 */
function TryOut({ onSave, isNew, id, isChanged }) {
	const [said, setSaid] = useState(/** @type {{ role: string, content: string, passages?: any[] }[]} */ ([]));
	const [words, setWords] = useState("");
	const [growing, setGrowing] = useState(/** @type {string | null} */ (null));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const stop = useRef(/** @type {AbortController | null} */ (null));
	useEffect(() => () => stop.current?.abort(), []);
	/** @param {Event} event */
	const ask = async (event) => {
		event.preventDefault();
		const question = words.trim();
		if (!question || growing !== null) return;
		setError(null);
		setGrowing("");
		const assistant = isChanged ? await onSave() : { id };
		if (!assistant) return setGrowing(null);
		setWords("");
		setSaid((all) => [...all, { role: "human", content: question }]);
		stop.current = new AbortController();
		try {
			const history = said.map(({ role, content }) => ({ role, content }));
			const turn = await post(`assistants/${assistant.id}/try/`, { content: question, history });
			const state = { messages: /** @type {any[]} */ ([]), text: /** @type {Record<string, string>} */ ({}), reasoning: /** @type {Record<string, string>} */ ({}), tool: "" };
			const last = await follow(streamUntil(stop.current.signal), turn.id, (each) => (fold(state, each), setGrowing(textOf(state))), () => {});
			const content = textOf(state);
			const passages = state.messages.flatMap((each) => each.citations ?? []);
			if (content) setSaid((all) => [...all, { role: "assistant", content, passages }]);
			if (last.event !== "turn.completed") setError(new Error(last.message ?? t("error.server")));
			announce(t("answer.complete"));
		} catch (why) {
			setError(why);
		} finally {
			setGrowing(null);
		}
	};
	return html`<section class="try" aria-labelledby="try">
		<div class="page-part-head"><h2 id="try">${t("try.title")}</h2>${said.length > 0 && html`<${Button} kind="quiet" onClick=${() => (setSaid([]), setError(null))}>${t("try.anew")}<//>`}</div>
		<p class="dim small">${t(isNew ? "try.new" : "try.about")}</p>
		${
			(said.length > 0 || growing !== null) &&
			html`<div class="try-log" tabindex="0" role="region" aria-label=${t("try.log")}>
				${said.map((each, i) => (each.role === "human" ? html`<p key=${i} class="mine" dir="auto">${each.content}</p>` : html`<${Markdown} key=${i} text=${each.content} passages=${each.passages ?? []} />`))}
				${growing !== null && (growing ? html`<${Markdown} text=${growing} isGrowing=${true} />` : html`<p class="dim">${t("answer.thinking")}</p>`)}
			</div>`
		}
		${Boolean(error) && html`<${Failure} error=${error} />`}
		${!isNew && html`<form class="form" onSubmit=${ask}>
			<${Field} as="textarea" rows="2" label=${t("try.question")} value=${words} onValue=${setWords} onKeyDown=${(/** @type {KeyboardEvent} */ event) => isSending(event) && ask(event)} dir="auto" />
			<div><${Button} kind="primary" icon="send" type="submit" isBusy=${growing !== null}>${t("try.ask")}<//></div>
		</form>`}
	</section>`;
}

/** @param {{ messages: any[], text: Record<string, string> }} state */
const textOf = ({ messages, text }) => [...messages.filter((each) => each.role === "assistant").map((each) => each.content), ...Object.values(text)].filter(Boolean).join("\n\n");

/** @param {{ id: string, mayWrite: boolean }} props */
function BoundTools({ id, mayWrite }) {
	const bound = useList(`assistants/${id}/tools/?limit=200`);
	const all = useList("tools/?limit=200");
	if (!bound.rows || !all.rows) return null;
	const ids = new Set(bound.rows.map((each) => each.tool_id));
	const rows = [...bound.rows.map((each) => each.tool), ...all.rows.filter((each) => !ids.has(each.id))];
	/** @param {any} tool @param {boolean} isOn */
	const turn = (tool, isOn) =>
		attempt(async () => {
			if (isOn) await post(`assistants/${id}/tools/`, { tool_id: tool.id });
			else await remove(`assistants/${id}/tools/${tool.id}/`);
			await bound.refresh();
		});
	return html`<section class="page-part" aria-labelledby="bound-tools">
		<h2 id="bound-tools">${t("assistants.tools")}</h2>
		<p class="dim small">${t("assistants.tools.about")} <a href="/tools">${t("tools.title")}</a></p>
		${!rows.length && html`<p class="dim nothing">${t("tools.none")}</p>`}
		${rows.map((tool) => html`<${Tick} key=${tool.id} label=${tool.name} hint=${tool.description?.slice(0, 160)} checked=${ids.has(tool.id)} disabled=${!mayWrite} onChecked=${(/** @type {boolean} */ isOn) => turn(tool, isOn)} />`)}
	</section>`;
}

/** @param {{ id: string, mayWrite: boolean }} props */
function Scenes({ id, mayWrite }) {
	const list = useList(`assistants/${id}/scene-prompts/?limit=100`);
	const [open, setOpen] = useState(/** @type {any} */ (null));
	const [leaving, setLeaving] = useState(/** @type {any} */ (null));
	return html`<section class="page-part" aria-labelledby="scenes">
		<div class="page-part-head"><h2 id="scenes">${t("scenes.title")}</h2>${
			mayWrite &&
			html`<${Menu} icon="add" label=${t("scenes.add")} items=${[
				{ label: t("scenes.own"), icon: "edit", onSelect: () => setOpen({ label: "", prompt: "", examples: [], temperature: null, top_p: null }) },
				{ label: t("scenes.usual"), icon: "add", onSelect: () => attempt(async () => (await post(`assistants/${id}/scene-prompts/usual/`), list.refresh())) },
			]} />`
		}</div>
		<p class="dim small">${t("scenes.about")}</p>
		${Boolean(list.rows?.length) && html`<ul class="rows">${list.rows?.map(
			(scene) => html`<li key=${scene.id} class="list-row"><span class="grow"><strong dir="auto">${scene.label}</strong><span class="dim small" dir="auto">${scene.prompt.slice(0, 120)}</span></span>${
				mayWrite &&
				html`<${IconButton} icon="edit" label=${t("scenes.edit", { name: scene.label })} onClick=${() => setOpen(scene)} /><${IconButton} icon="trash" label=${t("scenes.delete", { name: scene.label })} onClick=${() => setLeaving(scene)} />`
			}</li>`,
		)}</ul>`}
		${
			leaving &&
			html`<${Confirm} title=${t("scenes.delete", { name: leaving.label })} text=${t("final", { name: leaving.label })} yes=${t("delete")} isDangerous=${true} onClose=${() => setLeaving(null)}
				onYes=${() => attempt(async () => (await remove(`assistants/${id}/scene-prompts/${leaving.id}/`), note(t("deleted", { name: leaving.label })), list.refresh()))} />`
		}
		${open && html`<${SceneDialog} assistantId=${id} scene=${open} onClose=${() => setOpen(null)} onSaved=${list.refresh} />`}
	</section>`;
}

/** @param {{ assistantId: string, scene: any, onClose: () => void, onSaved: () => void }} props */
function SceneDialog({ assistantId, scene, onClose, onSaved }) {
	const form = useForm({ label: scene.label, prompt: scene.prompt, examples: scene.examples.join("\n"), temperature: scene.temperature, top_p: scene.top_p }, async (given) => {
		const body = { ...given, examples: given.examples.split("\n").map((/** @type {string} */ each) => each.trim()).filter(Boolean) };
		await (scene.id ? patch(`assistants/${assistantId}/scene-prompts/${scene.id}/`, body) : post(`assistants/${assistantId}/scene-prompts/`, body));
		onSaved();
		onClose();
	});
	return html`<${FormDialog} title=${scene.id ? scene.label : t("scenes.own")} form=${form} yes=${t("save")} onClose=${onClose} class="">
		<${Field} label=${t("name")} ...${form.field("label")} required />
		<${Field} as="textarea" rows="6" label=${t("assistants.prompt")} ...${form.field("prompt")} />
		<${Field} as="textarea" rows="4" label=${t("scenes.examples")} hint=${t("scenes.examples.hint")} ...${form.field("examples")} />
	<//>`;
}
