/* Invitations are handed over as links of this page, or as their bare code. */
import { post } from "./api.js";
import { load, switchOrganization } from "./session.js";

/** Join, and work there from now on. @param {string} token */
export async function accept(token) {
	const joined = await post("invitations/accept/", { token });
	await load();
	await switchOrganization(joined.organization_id ?? joined.organization?.id ?? joined.id);
}

/** @param {string} given a link or a code */
export function tokenOf(given) {
	const found = /\/invitation\/([^/?#\s]+)/.exec(given);
	return found ? decodeURIComponent(found[1]) : given.trim();
}

/** @param {string} token */
export const linkOf = (token) => new URL(`/invitation/${encodeURIComponent(token)}`, location.origin).href;
