/* What the server says to everybody, signed in or not; it stands in the document's head. */

/** @typedef {{ version: string, name: string, logo: string, language: string, currency: string, sendsMail: boolean, openSignup: boolean, maxMessageChars: number, maxUploadBytes: number }} Config */

/** @param {string} name */
const meta = (name) => document.querySelector(`meta[name="amber-${name}"]`)?.getAttribute("content") ?? "";

/** @type {Config} */
export const config = JSON.parse(meta("config"));
export const katexStyle = meta("katex-css");
