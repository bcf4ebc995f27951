/* With which groups an assistant, a library or a tool is shared, for whoever may share it. */
import { put, remove } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { isAdmin } from "../app/session.js";
import { Listed, useList } from "./lists.js";
import { attempt, Dialog, note } from "./ui.js";

/**
 * Each choice is kept at once.
 * @param {{ path: string, name: string, onClose: () => void }} props `path`: the address of the row, as `tools/{id}/`
 */
export function GroupShares({ path, name, onClose }) {
	const groups = useList("groups/?limit=200");
	const grants = useList(`${path}grants/?limit=200`, Infinity);
	const rights = new Map(grants.rows?.map((grant) => [grant.group_id, grant.right]));
	/** @param {any} group @param {string} right */
	const share = (group, right) =>
		attempt(async () => {
			const grant = `${path}grants/${group.id}/`;
			await (right ? put(grant, { right }) : remove(grant));
			note(t("saved"));
		}).then(grants.refresh);
	const options = ["", "use", "edit"].map((right) => [right, t(/** @type {any} */ (`groups.right.${right || "none"}`))]);
	return html`<${Dialog} title=${t("groups.share")} onClose=${onClose} class="small">
		<p class="dim">${t("groups.share.about", { name })}</p>
		<${Listed} list=${grants.rows ? groups : grants} empty=${isAdmin() ? html`${t("groups.none.admin")} <a href="/settings/groups">${t("groups.new")}</a>` : t("groups.none")}>
			<ul class="rows">
				${groups.rows?.map(
					(group) => html`<li key=${group.id} class="list-row">
						<span class="grow"><strong dir="auto">${group.name}</strong><span class="dim small">${t("groups.members", { count: group.member_count })}</span></span>
						<select class="plain-select" aria-label=${t("groups.rightOf", { name: group.name })} value=${rights.get(group.id) ?? ""} onChange=${(/** @type {any} */ event) => share(group, event.currentTarget.value)}>
							${options.map(([right, words]) => html`<option key=${right} value=${right} selected=${right === (rights.get(group.id) ?? "")}>${words}</option>`)}
						</select>
					</li>`,
				)}
			</ul>
		<//>
	<//>`;
}
