/* Groups of an organization: which there are, and who is in them. Owners and admins keep them. */
import { useState } from "preact/hooks";
import { patch, post, put, remove } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { isAdmin, me } from "../app/session.js";
import { Choice, Listed, useForm, useList } from "../components/lists.js";
import { attempt, Button, Confirm, Dialog, Failure, Field, Menu, note } from "../components/ui.js";

export function Groups() {
	const list = useList("groups/?limit=100");
	const [shown, setShown] = useState(/** @type {{ group: any, as: "edit" | "members" | "delete" } | null} */ (null));
	const close = () => setShown(null);
	const form = useForm({ name: "" }, async (given) => {
		await post("groups/", given);
		form.setGiven({ name: "" });
		await list.refresh();
	});
	/** @param {any} group */
	const leave = (group) => attempt(async () => (await remove(`groups/${group.id}/members/${me.value?.id}/`), note(t("groups.left", { name: group.name })), list.refresh()));
	/** @param {any} group */
	const end = (group) => attempt(async () => (await remove(`groups/${group.id}/`), note(t("deleted", { name: group.name })), list.refresh()));
	if (me.value?.organization?.personal) return html`<p class="dim">${t("members.personal")} <a href="/settings/organization">${t("organization.new")}</a></p>`;
	return html`<p class="dim">${t(isAdmin() ? "groups.about.admin" : "groups.about")}</p>
		<${Listed} list=${list} empty=${t(isAdmin() ? "groups.none.admin" : "groups.none")}>
			<ul class="rows">
				${list.rows?.map(
					(group) => html`<li key=${group.id} class="list-row">
						<span class="grow"><strong dir="auto">${group.name}</strong>${group.description && html`<span dir="auto">${group.description}</span>`}<span class="dim small">${t("groups.members", { count: group.member_count })}${group.is_member ? ` · ${t("groups.mine")}` : ""}</span></span>
						${
							(isAdmin() || group.is_member) &&
							html`<${Menu} label=${t("groups.actions", { name: group.name })} items=${[
								{ label: t("settings.members"), icon: "user", onSelect: () => setShown({ group, as: "members" }) },
								isAdmin() ? { label: t("edit"), icon: "edit", onSelect: () => setShown({ group, as: "edit" }) } : null,
								group.is_member ? { label: t("members.leave"), icon: "close", onSelect: () => leave(group) } : null,
								isAdmin() ? { label: t("delete"), icon: "trash", isDangerous: true, onSelect: () => setShown({ group, as: "delete" }) } : null,
							]} />`
						}
					</li>`,
				)}
			</ul>
		<//>
		${
			isAdmin() &&
			html`<h3 class="page-part">${t("groups.new")}</h3>
				<form class="inline-form" onSubmit=${form.onSubmit}><${Field} label=${t("name")} ...${form.field("name")} required maxlength="200" /><${Button} type="submit" isBusy=${form.isBusy}>${t("create")}<//></form>
				<${Failure} error=${form.rest()} />`
		}
		${shown?.as === "edit" && html`<${EditGroup} group=${shown.group} onClose=${close} onSaved=${list.refresh} />`}
		${shown?.as === "members" && html`<${GroupMembers} group=${shown.group} onClose=${close} onChanged=${list.refresh} />`}
		${shown?.as === "delete" && html`<${Confirm} title=${t("groups.delete.title")} text=${t("groups.delete.text", { name: shown.group.name })} yes=${t("delete")} isDangerous=${true} onClose=${close} onYes=${() => end(shown.group)} />`}`;
}

/** @param {{ group: any, onClose: () => void, onSaved: () => void }} props */
function EditGroup({ group, onClose, onSaved }) {
	const form = useForm({ name: group.name, description: group.description }, async (given) => {
		await patch(`groups/${group.id}/`, given);
		onSaved();
		onClose();
		note(t("saved"));
	});
	return html`<${Dialog} title=${t("edit")} onClose=${onClose} class="small">
		<form class="form" onSubmit=${form.onSubmit}>
			<${Field} label=${t("name")} ...${form.field("name")} required maxlength="200" />
			<${Field} as="textarea" rows="3" label=${t("description")} ...${form.field("description")} maxlength="2000" />
			<${Failure} error=${form.rest()} />
			<div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit" isBusy=${form.isBusy}>${t("save")}<//></div>
		</form>
	<//>`;
}

/** Who is in the group; admins let others in and take them out. @param {{ group: any, onClose: () => void, onChanged: () => void }} props */
function GroupMembers({ group, onClose, onChanged }) {
	const list = useList(`groups/${group.id}/members/?limit=100`);
	const people = useList(isAdmin() ? `organizations/${me.value?.organization?.id}/members/?limit=200` : null, Infinity);
	const [chosen, setChosen] = useState("");
	/** @param {() => Promise<unknown>} act */
	const change = (act) => attempt(async () => (await act(), setChosen(""), onChanged(), list.refresh()));
	/** @param {{ name: string, email: string }} person */
	const called = (person) => person.name || person.email;
	const inside = new Set(list.rows?.map((each) => each.user_id));
	const outside = (people.rows ?? []).filter((each) => !inside.has(each.user_id));
	/** @param {Event} event */
	const add = (event) => {
		event.preventDefault();
		if (chosen) change(() => put(`groups/${group.id}/members/${chosen}/`, {}));
	};
	return html`<${Dialog} title=${t("groups.membersOf", { name: group.name })} onClose=${onClose} class="small">
		<${Listed} list=${list} empty=${t("groups.nobody")}>
			<ul class="rows">
				${list.rows?.map(
					(member) => html`<li key=${member.user_id} class="list-row">
						<span class="grow"><strong dir="auto">${called(member)}</strong>${member.name && html`<span class="dim small">${member.email}</span>`}</span>
						${isAdmin() && html`<${Button} onClick=${() => change(() => remove(`groups/${group.id}/members/${member.user_id}/`))} aria-label=${`${t("members.remove")}: ${member.email}`}>${t("members.remove")}<//>`}
					</li>`,
				)}
			</ul>
		<//>
		${
			Boolean(outside.length) &&
			html`<form class="inline-form" onSubmit=${add}>
				<${Choice} label=${t("groups.add")} value=${chosen} onValue=${setChosen} options=${[["", t("groups.choose")], ...outside.map((each) => [each.user_id, called(each)])]} />
				<${Button} type="submit" disabled=${!chosen}>${t("groups.add.do")}<//>
			</form>`
		}
	<//>`;
}
