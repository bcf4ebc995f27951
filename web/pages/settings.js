/* Oneself and the organization: profile, keys, people, groups, budgets, webhooks, feedback, one's data. */
import { useState } from "preact/hooks";
import { patch, post, remove, send } from "../app/api.js";
import { html } from "../app/html.js";
import { date, money, number, t, time } from "../app/i18n.js";
import { isAdmin, load, me } from "../app/session.js";
import { Choice, FormDialog, Tick, useForm } from "../components/forms.js";
import { Listed, useEvery, useList, useRow } from "../components/lists.js";
import { attempt, Button, Confirm, copyText, Dialog, Field, Menu, note, useTitle } from "../components/ui.js";
import { Groups } from "./groups.js";

/** The parts, by address; `admin` are for owners and admins. */
const PARTS = /** @type {const} */ ({
	profile: { Part: Profile },
	keys: { Part: Keys },
	organization: { Part: Organization },
	members: { Part: Members },
	groups: { Part: Groups },
	budgets: { Part: Budgets, isAdmin: true },
	webhooks: { Part: Webhooks },
	feedback: { Part: Feedback, isAdmin: true },
	data: { Part: Data },
});

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const name = /** @type {keyof typeof PARTS} */ (params.part in PARTS ? params.part : "profile");
	const title = t(/** @type {any} */ (`settings.${name}`));
	useTitle(title);
	const { Part } = PARTS[name];
	const shown = Object.entries(PARTS).filter(([, part]) => !("isAdmin" in part) || isAdmin());
	return html`<main class="page" id="content" tabindex="-1">
		<h1>${t("settings.title")}</h1>
		<nav aria-label=${t("settings.title")}>
			<ul class="parts-nav">${shown.map(([each]) => html`<li key=${each}><a href=${each === "profile" ? "/settings" : `/settings/${each}`} aria-current=${each === name ? "page" : undefined}>${t(/** @type {any} */ (`settings.${each}`))}</a></li>`)}</ul>
		</nav>
		<section class="page-part" aria-labelledby="part"><h2 id="part">${title}</h2><${Part} key=${name} /></section>
	</main>`;
}

function Profile() {
	const zones = Intl.supportedValuesOf?.("timeZone") ?? [];
	const form = useForm({ name: me.value?.name ?? "", time_zone: me.value?.time_zone ?? "", language: me.value?.language ?? "", mail_notices: me.value?.mail_notices ?? true }, async (given) => {
		await patch("me/", given);
		await load();
		note(t("saved"));
	});
	return html`<form class="form narrow-form" onSubmit=${form.onSubmit}>
		<${Field} label=${t("signIn.email")} value=${me.value?.email ?? ""} onValue=${() => {}} readonly />
		<${Field} label=${t("name")} ...${form.field("name")} autocomplete="name" />
		<${Choice} label=${t("settings.zone")} value=${form.given.time_zone} onValue=${form.set("time_zone")} options=${[["UTC", "UTC"], ...(form.given.time_zone && !zones.includes(form.given.time_zone) && form.given.time_zone !== "UTC" ? [[form.given.time_zone, form.given.time_zone]] : []), ...zones.filter((zone) => zone !== "UTC").map((zone) => [zone, zone])]} />
		<${Choice} label=${t("settings.mailLanguage")} value=${form.given.language} onValue=${form.set("language")} options=${[["", t("settings.mailLanguage.usual")], ["en", "English"], ["de", "Deutsch"], ["zh-hans", "简体中文"]]} />
		<${Tick} label=${t("settings.notices")} hint=${t("settings.notices.hint")} checked=${form.given.mail_notices} onChecked=${form.set("mail_notices")} />
		${form.failure}
		<div><${Button} kind="primary" type="submit" isBusy=${form.isBusy}>${t("save")}<//></div>
	</form>`;
}

/** A text that is shown this once. @param {{ title: string, text: string, secret: string, onClose: () => void }} props */
function Secret({ title, text, secret, onClose }) {
	return html`<${Dialog} title=${title} onClose=${onClose} isStubborn=${true}>
		<p>${text}</p>
		<code class="code-line" tabindex="0" data-secret="">${secret}</code>
		<div class="actions"><${Button} icon="copy" onClick=${() => copyText(secret)}>${t("copy")}<//><${Button} kind="primary" onClick=${onClose}>${t("settings.kept")}<//></div>
	<//>`;
}

function Keys() {
	const list = useList("api-keys/?limit=100");
	const [isNew, setNew] = useState(false);
	const [issued, setIssued] = useState("");
	const [leaving, setLeaving] = useState(/** @type {any} */ (null));
	return html`<p class="dim">${t("keys.about")}</p>
		<p><${Button} kind="primary" icon="add" onClick=${() => setNew(true)}>${t("keys.new")}<//></p>
		<${Listed} list=${list} empty=${t("keys.none")}>
			<ul class="rows">
				${list.rows?.map(
					(key) => html`<li key=${key.id} class="list-row">
						<span class="grow"><strong dir="auto">${key.name}</strong><span class="dim small"><code>${key.prefix}…</code> · ${key.revoked_at ? t("keys.revoked", { day: date(key.revoked_at) }) : key.last_used_at ? t("keys.used", { day: time(key.last_used_at) }) : t("keys.unused")}${key.scopes.length ? ` · ${key.scopes.join(", ")}` : ""}${key.expires_at ? ` · ${t("keys.until", { day: date(key.expires_at) })}` : ""}</span></span>
						${!key.revoked_at && html`<${Button} onClick=${() => setLeaving(key)} aria-label=${`${t("keys.revoke")}: ${key.name}`}>${t("keys.revoke")}<//>`}
					</li>`,
				)}
			</ul>
		<//>
		${isNew && html`<${NewKey} onClose=${() => setNew(false)} onMade=${(/** @type {string} */ key) => (setIssued(key), list.refresh())} />`}
		${issued && html`<${Secret} title=${t("keys.made")} text=${t("settings.once")} secret=${issued} onClose=${() => setIssued("")} />`}
		${leaving && html`<${Confirm} title=${t("keys.revoke")} text=${t("keys.revoke.text", { name: leaving.name })} yes=${t("keys.revoke")} isDangerous=${true} onClose=${() => setLeaving(null)} onYes=${() => attempt(async () => (await remove(`api-keys/${leaving.id}/`), list.refresh()))} />`}`;
}

/** @param {{ onClose: () => void, onMade: (key: string) => void }} props */
function NewKey({ onClose, onMade }) {
	const assistants = useList("assistants/?limit=200");
	const form = useForm({ name: "", assistant_id: "", scope: "", days: "" }, async ({ name, assistant_id, scope, days }) => {
		const expires_at = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
		const made = await post("api-keys/", { name, assistant_id: assistant_id || null, scopes: scope ? scope.split(",") : [], expires_at });
		onClose();
		onMade(made.key);
	});
	return html`<${FormDialog} title=${t("keys.new")} form=${form} yes=${t("create")} onClose=${onClose}>
		<${Field} label=${t("name")} hint=${t("keys.name.hint")} ...${form.field("name")} required />
		<${Choice} label=${t("keys.scope")} value=${form.given.scope} onValue=${form.set("scope")} options=${[["", t("keys.scope.all")], ["read", t("keys.scope.read")], ["read,write", t("keys.scope.write")], ["public", t("keys.scope.public")]]} />
		<${Choice} label=${t("keys.assistant")} value=${form.given.assistant_id} onValue=${form.set("assistant_id")} options=${[["", t("keys.assistant.all")], ...(assistants.rows ?? []).map((each) => [each.id, each.name])]} />
		<${Choice} label=${t("keys.ends")} value=${form.given.days} onValue=${form.set("days")} options=${[["", t("keys.never")], ...[7, 30, 90, 365].map((days) => [String(days), t("keys.days", { count: days })])]} />
	<//>`;
}

function Organization() {
	const organization = me.value?.organization;
	const form = useForm({ name: organization?.name ?? "", retention_days: organization?.retention_days ?? "", default_prompt: organization?.default_prompt ?? "", trace_content: organization?.trace_content ?? false }, async (given) => {
		await patch(`organizations/${organization?.id}/`, { ...given, retention_days: given.retention_days === "" ? null : Number(given.retention_days) });
		await load();
		note(t("saved"));
	});
	const made = useForm({ name: "" }, async ({ name }) => {
		await post("organizations/", { name });
		await load();
		made.setGiven({ name: "" });
		note(t("organization.made", { name }));
	});
	const may = isAdmin();
	return html`<p class="dim">${t(may ? "organization.about" : "organization.member")}</p>
		<form class="form narrow-form" onSubmit=${form.onSubmit}>
			<${Field} label=${t("name")} ...${form.field("name")} readonly=${!may} required />
			${
				may &&
				html`<${Field} label=${t("organization.retention")} hint=${t("organization.retention.hint")} type="number" min="1" ...${form.field("retention_days")} />
					<${Field} as="textarea" rows="5" label=${t("organization.prompt")} hint=${t("organization.prompt.hint")} ...${form.field("default_prompt")} dir="auto" />
					<${Tick} label=${t("organization.traces")} hint=${t("organization.traces.hint")} checked=${form.given.trace_content} onChecked=${form.set("trace_content")} />
					${form.failure}
					<div><${Button} kind="primary" type="submit" isBusy=${form.isBusy}>${t("save")}<//></div>`
			}
		</form>
		<h3 class="page-part">${t("organization.new")}</h3>
		<form class="inline-form" onSubmit=${made.onSubmit}><${Field} label=${t("name")} ...${made.field("name")} required /><${Button} type="submit">${t("create")}<//></form>
		${made.failure}`;
}

const FEW_MEMBERS = 15;
const MOST_MEMBERS = 100;

function Members() {
	const organization = me.value?.organization;
	const list = useList(organization ? `organizations/${organization.id}/members/?limit=200` : null, Infinity);
	const [words, setWords] = useState("");
	const [most, setMost] = useState(MOST_MEMBERS);
	const found = (list.rows ?? []).filter((each) => `${each.name} ${each.email}`.toLowerCase().includes(words.trim().toLowerCase()));
	const may = isAdmin();
	const [leaving, setLeaving] = useState(/** @type {any} */ (null));
	const at = `organizations/${organization?.id}/`;
	/** @type {[string, string][]} */
	const roles = ["owner", "admin", "member"].map((role) => [role, t(/** @type {any} */ (`role.${role}`))]);
	/** @param {any} member @param {string} role */
	const change = (member, role) => attempt(async () => (await patch(`${at}members/${member.id}/`, { role }), note(t("saved")))).then(list.refresh);
	if (organization?.personal) return html`<p class="dim">${t("members.personal")} <a href="/settings/organization">${t("organization.new")}</a></p>`;
	return html`${may && html`<${Invite} at=${at} roles=${roles} />`}
		<h3 class="page-part">${list.rows && t("groups.members", { count: list.rows.length })}</h3>
		${(list.rows?.length ?? 0) > FEW_MEMBERS && html`<div class="narrow-form"><${Field} label=${t("members.search")} type="search" value=${words} onValue=${setWords} /></div>`}
		<${Listed} list=${list} empty="">
			${!found.length && html`<p class="dim nothing">${t("chats.nothingFound")}</p>`}
			<ul class="rows">
				${found.slice(0, most).map(
					(member) => html`<li key=${member.id} class="list-row">
						<span class="grow"><strong dir="auto">${member.name || member.email}</strong>${member.name && html`<span class="dim small">${member.email}</span>`}</span>
						${may ? html`<select class="plain-select" aria-label=${t("members.roleOf", { name: member.email })} value=${member.role} onChange=${(/** @type {any} */ event) => change(member, event.currentTarget.value)}>${roles.map(([role, words]) => html`<option key=${role} value=${role} selected=${role === member.role}>${words}</option>`)}</select>` : html`<span class="dim">${t(/** @type {any} */ (`role.${member.role}`))}</span>`}
						${(may || member.user_id === me.value?.id) && html`<${Button} onClick=${() => setLeaving(member)} aria-label=${`${t(member.user_id === me.value?.id ? "members.leave" : "members.remove")}: ${member.email}`}>${t(member.user_id === me.value?.id ? "members.leave" : "members.remove")}<//>`}
					</li>`,
				)}
			</ul>
			${found.length > most && html`<p class="more-rows"><${Button} onClick=${() => setMost(most + MOST_MEMBERS)}>${t("more")}<//></p>`}
		<//>
		${leaving && html`<${Confirm} title=${t("members.remove")} text=${t("members.remove.text", { name: leaving.email })} yes=${t(leaving.user_id === me.value?.id ? "members.leave" : "members.remove")} isDangerous=${true} onClose=${() => setLeaving(null)} onYes=${() => attempt(async () => (await remove(`${at}members/${leaving.id}/`), leaving.user_id === me.value?.id ? await load() : await list.refresh()))} />`}`;
}

/** Invite people, and see who is invited. @param {{ at: string, roles: [string, string][] }} props `at`: the organization's address */
function Invite({ at, roles }) {
	const invitations = useList(`${at}invitations/?limit=100`);
	const [issued, setIssued] = useState(/** @type {{ link: string, mailedTo: string } | null} */ (null));
	const form = useForm({ email: "", role: "member" }, async (given) => {
		const made = await post(`${at}invitations/`, given);
		form.setGiven({ email: "", role: "member" });
		invitations.refresh();
		setIssued({ link: `${location.origin}/invitation/${made.token}`, mailedTo: made.is_mailed ? made.email : "" });
	});
	return html`<h3 class="page-part">${t("members.invite")}</h3>
		<form class="inline-form" onSubmit=${form.onSubmit}>
			<${Field} label=${t("signIn.email")} type="email" ...${form.field("email")} required autocomplete="off" />
			<${Choice} label=${t("members.role")} value=${form.given.role} onValue=${form.set("role")} options=${roles} />
			<${Button} kind="primary" type="submit" isBusy=${form.isBusy}>${t("members.invite.do")}<//>
		</form>
		${form.failure}
		${Boolean(invitations.rows?.length) && html`<h3 class="page-part">${t("members.invited")}</h3><ul class="rows">${invitations.rows?.map((each) => html`<li key=${each.id} class="list-row"><span class="grow"><strong>${each.email}</strong><span class="dim small">${t(/** @type {any} */ (`role.${each.role}`))} · ${t("keys.until", { day: date(each.expires_at) })}</span></span><${Button} onClick=${() => attempt(async () => (await remove(`${at}invitations/${each.id}/`), invitations.refresh()))} aria-label=${`${t("members.withdraw")}: ${each.email}`}>${t("members.withdraw")}<//></li>`)}</ul>`}
		${issued && html`<${Secret} title=${t("members.invitedNow")} text=${issued.mailedTo ? t("members.mailed", { email: issued.mailedTo }) : t("members.link")} secret=${issued.link} onClose=${() => setIssued(null)} />`}`;
}

function Budgets() {
	const list = useList("budgets/?limit=100");
	const [open, setOpen] = useState(/** @type {{ budget: any, as: "edit" | "delete" } | null} */ (null));
	const close = () => setOpen(null);
	const form = useForm({ scope: "organization", period: "month", unit: "money", limit: "" }, async (given) => {
		await post("budgets/", given);
		form.setGiven({ ...given, limit: "" });
		list.refresh();
		note(t("saved"));
	});
	/** @param {string} kind @param {string[]} names @returns {[string, string][]} */
	const options = (kind, names) => names.map((name) => [name, t(/** @type {any} */ (`budgets.${kind}.${name}`))]);
	/** @param {any} budget @param {string} value */
	const amount = (budget, value) => (budget.unit === "money" ? money(Number(value)) : number(Number(value), { maximumFractionDigits: 0 }));
	/** @param {any} budget */
	const nameOf = (budget) => `${t(/** @type {any} */ (`budgets.scope.${budget.scope}`))}${budget.subject ? ` · ${budget.subject.slice(0, 8)}` : ""}`;
	/** @param {any} budget */
	const limitOf = (budget) => t(/** @type {any} */ (`budgets.limit.${budget.unit}`), { limit: amount(budget, budget.limit), period: t(/** @type {any} */ (`budgets.period.${budget.period}`)) });
	return html`<p class="dim">${t("budgets.about")}</p>
		<${Listed} list=${list} empty=${t("budgets.none")}>
			<ul class="rows">
				${list.rows?.map(
					(budget) => html`<li key=${budget.id} class="list-row">
						<span class="grow"><strong>${nameOf(budget)}</strong>
							<span class="dim small">${limitOf(budget)}${budget.used !== null ? ` · ${t("budgets.used", { used: amount(budget, budget.used), day: time(budget.resets_at) })}` : ` · ${t("budgets.each")}`}</span>
							${budget.used !== null && html`<meter min="0" max=${Number(budget.limit) || 1} value=${Number(budget.used)} high=${Number(budget.limit) * 0.85} aria-label=${t("budgets.usedLabel")}></meter>`}</span>
						${budget.by_operator ? html`<span class="dim small">${t("budgets.byOperator")}</span>` : html`<${Menu} label=${t("ledger.actions", { name: nameOf(budget) })} items=${[
							{ label: t("edit"), icon: "edit", onSelect: () => setOpen({ budget, as: "edit" }) },
							{ label: t("delete"), icon: "trash", isDangerous: true, onSelect: () => setOpen({ budget, as: "delete" }) },
						]} />`}
					</li>`,
				)}
			</ul>
		<//>
		<h3 class="page-part">${t("budgets.new")}</h3>
		<form class="form" onSubmit=${form.onSubmit}>
			<div class="pair">
				<${Choice} label=${t("budgets.scope")} value=${form.given.scope} onValue=${form.set("scope")} options=${options("scope", ["organization", "user", "key", "assistant", "guest"])} />
				<${Choice} label=${t("budgets.period")} value=${form.given.period} onValue=${form.set("period")} options=${options("period", ["day", "month"])} />
				<${Choice} label=${t("budgets.unit")} value=${form.given.unit} onValue=${form.set("unit")} options=${options("unit", ["money", "tokens"])} />
				<${Field} label=${t("budgets.amount")} type="number" min="0" step="any" ...${form.field("limit")} required />
			</div>
			${form.failure}
			<div><${Button} kind="primary" type="submit" isBusy=${form.isBusy}>${t("create")}<//></div>
		</form>
		${open?.as === "edit" && html`<${EditBudget} budget=${open.budget} name=${nameOf(open.budget)} onClose=${close} onSaved=${list.refresh} />`}
		${open?.as === "delete" && html`<${Confirm} title=${t("budgets.delete.title")} text=${`${nameOf(open.budget)}: ${limitOf(open.budget)}`} yes=${t("delete")} isDangerous=${true} onClose=${close} onYes=${() => attempt(async () => (await remove(`budgets/${open.budget.id}/`), list.refresh()))} />`}`;
}

/** @param {{ budget: any, name: string, onClose: () => void, onSaved: () => void }} props */
function EditBudget({ budget, name, onClose, onSaved }) {
	const form = useForm({ limit: String(Number(budget.limit)) }, async (given) => {
		await patch(`budgets/${budget.id}/`, given);
		onSaved();
		onClose();
		note(t("saved"));
	});
	return html`<${FormDialog} title=${name} form=${form} yes=${t("save")} onClose=${onClose}>
		<${Field} label=${t("budgets.amount")} type="number" min="0" step="any" ...${form.field("limit")} required />
	<//>`;
}

function Webhooks() {
	const list = useList("webhooks/?limit=100");
	const [issued, setIssued] = useState("");
	const [log, setLog] = useState(/** @type {any} */ (null));
	const [leaving, setLeaving] = useState(/** @type {any} */ (null));
	const form = useForm({ url: "", include_output: false, whole_organization: false }, async (given) => {
		const made = await post("webhooks/", given);
		form.setGiven({ url: "", include_output: false, whole_organization: false });
		list.refresh();
		setIssued(made.secret ?? "");
	});
	return html`<p class="dim">${t("webhooks.about")}</p>
		<${Listed} list=${list} empty=${t("webhooks.none")}>
			<ul class="rows">
				${list.rows?.map(
					(webhook) => html`<li key=${webhook.id} class="list-row">
						<span class="grow"><strong dir="auto">${webhook.url}</strong><span class="dim small">${webhook.enabled ? t("webhooks.on") : t("webhooks.off")} · ${webhook.events.join(", ")}</span>${webhook.disabled_reason && html`<span class="error">${webhook.disabled_reason}</span>`}</span>
						<${Button} onClick=${() => setLog(webhook)} aria-label=${`${t("webhooks.log")}: ${webhook.url}`}>${t("webhooks.log")}<//>
						<${Menu} label=${t("webhooks.actions", { url: webhook.url })} items=${[
							{ label: t(webhook.enabled ? "webhooks.disable" : "webhooks.enable"), icon: webhook.enabled ? "stop" : "check", onSelect: () => attempt(async () => (await patch(`webhooks/${webhook.id}/`, { enabled: !webhook.enabled }), list.refresh())) },
							{ label: t("webhooks.rotate"), icon: "retry", onSelect: () => attempt(async () => setIssued((await post(`webhooks/${webhook.id}/rotate/`)).secret)) },
							{ label: t("delete"), icon: "trash", isDangerous: true, onSelect: () => setLeaving(webhook) },
						]} />
					</li>`,
				)}
			</ul>
		<//>
		<h3 class="page-part">${t("webhooks.new")}</h3>
		<form class="form narrow-form" onSubmit=${form.onSubmit}>
			<${Field} label=${t("webhooks.url")} type="url" ...${form.field("url")} required />
			<${Tick} label=${t("webhooks.output")} checked=${form.given.include_output} onChecked=${form.set("include_output")} />
			${isAdmin() && html`<${Tick} label=${t("webhooks.whole")} checked=${form.given.whole_organization} onChecked=${form.set("whole_organization")} />`}
			${form.failure}
			<div><${Button} kind="primary" type="submit" isBusy=${form.isBusy}>${t("create")}<//></div>
		</form>
		${issued && html`<${Secret} title=${t("webhooks.secret")} text=${t("settings.once")} secret=${issued} onClose=${() => setIssued("")} />`}
		${leaving && html`<${Confirm} title=${t("webhooks.delete.title")} text=${t("final", { name: leaving.url })} yes=${t("delete")} isDangerous=${true} onClose=${() => setLeaving(null)} onYes=${() => attempt(async () => (await remove(`webhooks/${leaving.id}/`), list.refresh()))} />`}
		${log && html`<${Deliveries} webhook=${log} onClose=${() => setLog(null)} />`}`;
}

/** @param {{ webhook: any, onClose: () => void }} props */
function Deliveries({ webhook, onClose }) {
	const list = useList(`webhooks/${webhook.id}/deliveries/?limit=50`);
	return html`<${Dialog} title=${t("webhooks.log")} onClose=${onClose} class="wide">
		<${Listed} list=${list} empty=${t("webhooks.noLog")}>
			<ul class="rows">${list.rows?.map(
				(each) => html`<li key=${each.id} class="list-row"><span class="grow"><strong>${each.event}</strong><span class="dim small">${time(each.created_at)} · ${each.status}${each.http_status ? ` · HTTP ${each.http_status}` : ""}</span>${each.error && html`<span class="error">${each.error}</span>`}</span><${Button} onClick=${() => attempt(async () => (await post(`webhooks/${webhook.id}/deliveries/${each.id}/redeliver/`), list.refresh()))}>${t("webhooks.again")}<//></li>`,
			)}</ul>
		<//>
	<//>`;
}

function Feedback() {
	const [value, setValue] = useState("");
	const list = useList(`feedback/?limit=50${value && `&value=${value}`}`);
	const { row: totals } = useRow("feedback/totals/");
	/** @type {Map<string, { up: number, down: number }>} */
	const sums = new Map();
	for (const each of totals?.results ?? []) {
		const name = each.assistant?.name ?? t("usage.none");
		const sum = sums.get(name) ?? { up: 0, down: 0 };
		sums.set(name, { up: sum.up + each.up, down: sum.down + each.down });
	}
	return html`<p class="dim">${t("given.about")}</p>
		${sums.size > 0 && html`<h3>${t("given.totals")}</h3><div class="wide-table"><table class="plain"><thead><tr><th scope="col">${t("usage.by.assistant")}</th><th scope="col" class="align-right">${t("given.up")}</th><th scope="col" class="align-right">${t("given.down")}</th></tr></thead><tbody>${[...sums].map(([name, sum]) => html`<tr key=${name}><td dir="auto">${name}</td><td class="align-right">${number(sum.up)}</td><td class="align-right">${number(sum.down)}</td></tr>`)}</tbody></table></div>`}
		<div class="page-part-head page-part"><h3>${t("given.all")}</h3><${Choice} label=${t("ledger.show")} value=${value} onValue=${setValue} options=${[["", t("ledger.all")], ["up", t("given.up")], ["down", t("given.down")]]} /></div>
		<${Listed} list=${list} empty=${t("given.none")}>
			<ul class="rows">${list.rows?.map((each) => html`<li key=${each.id} class="list-row"><span class="grow"><strong>${t(/** @type {any} */ (`given.${each.value}`))}${each.reason && ` · ${t(/** @type {any} */ (`feedback.reason.${each.reason}`))}`}</strong>${each.comment && html`<span dir="auto">${each.comment}</span>`}<span class="dim small">${each.assistant?.name ?? t("usage.none")} · ${time(each.created_at)}</span></span></li>`)}</ul>
		<//>`;
}

function Data() {
	const { row: erasure, refresh } = useRow("me/erase/");
	useEvery(refresh, erasure?.state === "running" ? 3_000 : 0);
	const [isAsking, setAsking] = useState(false);
	const [isBusy, setBusy] = useState(false);
	const download = () =>
		attempt(async () => {
			setBusy(true);
			try {
				const blob = await (await send("GET", "me/export/")).blob();
				const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: "amber-export.json" });
				link.click();
				setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
			} finally {
				setBusy(false);
			}
		});
	return html`<h3>${t("data.export")}</h3>
		<p class="dim">${t("data.export.about")}</p>
		<p><${Button} icon="export" onClick=${download} isBusy=${isBusy}>${t("data.export.do")}<//></p>
		<h3 class="page-part">${t("data.erase")}</h3>
		<p class="dim">${t("data.erase.about")}</p>
		${erasure && erasure.state !== "none" && html`<p role="status">${t(erasure.state === "running" ? "data.erasing" : "data.erased")}</p>`}
		<p><${Button} kind="danger" icon="trash" onClick=${() => setAsking(true)}>${t("data.erase.do")}<//></p>
		${isAsking && html`<${Erase} onClose=${() => setAsking(false)} onDone=${refresh} />`}`;
}

/** @param {{ onClose: () => void, onDone: () => void }} props */
function Erase({ onClose, onDone }) {
	const form = useForm({ confirm: "", account: false }, async (given) => {
		await post("me/erase/", given);
		if (given.account) return location.assign("/");
		onDone();
		onClose();
		note(t("data.erasing"));
	});
	return html`<${FormDialog} title=${t("data.erase")} form=${form} kind="danger" yes=${t("data.erase.do")} onClose=${onClose}>
		<p>${t("data.erase.text")}</p>
		<${Tick} label=${t("data.erase.account")} hint=${t("data.erase.account.hint")} checked=${form.given.account} onChecked=${form.set("account")} />
		<${Field} label=${t("data.erase.confirm", { email: me.value?.email ?? "" })} ...${form.field("confirm")} autocomplete="off" required />
	<//>`;
}
