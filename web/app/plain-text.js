/* Markdown as plain text, for the places that have room for a few words of it only. */

/** Of these only what they hold stays; `$1`, or nothing. @type {[RegExp, string][]} */
const MARKS = [
	[/^[ \t]*(?:```|~~~).*$/gm, ""],
	[/^[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*$/gm, ""],
	[/^[ \t]*(?:>[ \t]?)+/gm, ""],
	[/^[ \t]*#{1,6}[ \t]+/gm, ""],
	[/^[ \t]*[-*+][ \t]+(?:\[[ xX]\][ \t]+)?/gm, ""],
	[/!?\[([^\]\n]{0,300})\]\([^()\n]{0,2000}(?:\([^()\n]{0,300}\))?[^()\n]{0,300}\)/g, "$1"],
	[/(\*\*|__|~~)(?=\S)(.{1,1000}?\S)\1/g, "$2"],
	[/(?<![\p{L}\p{N}*_\\])([*_])(?=[^\s*_])(.{0,1000}?[^\s*_\\])\1(?![\p{L}\p{N}*_])/gu, "$2"],
	[/(`+)(.{1,1000}?)\1/g, "$2"],
	[/\\([!-/:-@[-`{-~])/g, "$1"],
];
/** A row of a table; of dashes alone it is the line below the head. */
const ROW = /^[ \t]*\|.*$/gm;

/** @param {string} row */
const cellsOf = (row) => (/[^\s|:-]/.test(row) ? row.split("|").map((cell) => cell.trim()).filter(Boolean).join(" · ") : "");

/** @param {string} text Markdown, a few thousand characters: it takes time for long ones */
export function plainText(text) {
	const marked = text.replace(ROW, cellsOf);
	return MARKS.reduce((plain, [mark, held]) => plain.replace(mark, held), marked).replace(/\n{3,}/g, "\n\n").trim();
}
