/** @type {import("../app/i18n.js").Catalogue} */
export const words = {};
