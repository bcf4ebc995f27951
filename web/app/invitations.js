/* Invitations are handed over as links of this page, or as their bare code. */

/** @param {string} given a link or a code */
export function tokenOf(given) {
	const found = /\/invitation\/([^/?#\s]+)/.exec(given);
	return found ? decodeURIComponent(found[1]) : given.trim();
}

/** @param {string} token */
export const linkOf = (token) => new URL(`/invitation/${encodeURIComponent(token)}`, location.origin).href;
