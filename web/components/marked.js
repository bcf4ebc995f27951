/* A found text in which the words of its question are marked. Both stay text: neither is read as HTML. */
import { html } from "../app/html.js";
import { plainText } from "../app/plain-text.js";

/** Scripts that put no spaces between words: of their texts each two characters count as a word. */
const DENSE = "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Hangul}\\p{sc=Thai}ー";
const WORD = new RegExp(`[${DENSE}]+|(?:(?![${DENSE}])[\\p{L}\\p{M}\\p{N}])+`, "gu");
const IS_DENSE = new RegExp(`^[${DENSE}]`, "u");
/** Two of these are mostly an ending or a particle. */
const IS_GRAMMAR = /^\p{sc=Hiragana}+$/u;
const ENDINGS = ["s", "es", "ed", "er", "ers", "ing", "ings", "ly"];

/** What questions are made of in any text; words of one or two letters count as such, too. */
const IGNORED = new Set(
	(
		"the and for are was were has have had can could did does not but you your our his her its how who why what when where which " +
		"that this these those there their them they then than with from into about will would should been any all some " +
		"什么 怎么 如何 怎样 多少 可以 我们 你们 他们 这个 那个 一个 哪些 哪里 是否 没有 为什"
	).split(" "),
);

/**
 * Which words are marked of a text that was found for this question.
 * @param {string} question
 */
export function questionWords(question) {
	const words = new Set();
	for (const [word] of question.matchAll(WORD))
		for (const each of IS_DENSE.test(word) ? pairsOf([...word]) : formsOf(word.toLowerCase())) words.add(each);
	return words;
}

/** @param {{ text: string, words: Set<string> }} props */
export function Marked({ text, words }) {
	const pieces = [];
	let end = 0;
	for (const [from, until] of placesOf(text, words)) {
		pieces.push(text.slice(end, from), html`<mark>${text.slice(from, until)}</mark>`);
		end = until;
	}
	return html`${pieces}${text.slice(end)}`;
}

/** What a text in Markdown says around the first of these words; its beginning, if they are not in it. @param {string} text @param {Set<string>} words */
export function around(text, words) {
	const start = Math.max(0, firstOf(text, words) - 400);
	const near = plainText(text.slice(start, start + 1_200));
	const from = Math.max(0, firstOf(near, words) - 40);
	return (start + from > 0 ? "…" : "") + near.slice(from, from + 140);
}

/** @param {string} text @param {Set<string>} words */
const firstOf = (text, words) => placesOf(text, words)[0]?.[0] ?? 0;

/** Where the words stand, in order; neighbours are one place. @param {string} text @param {Set<string>} words */
function placesOf(text, words) {
	/** @type {number[][]} */
	const places = [];
	/** @param {number} from @param {number} until */
	const add = (from, until) => {
		const last = places[places.length - 1];
		if (last && from <= last[1]) last[1] = until;
		else places.push([from, until]);
	};
	for (const { 0: word, index } of text.matchAll(WORD)) {
		if (!IS_DENSE.test(word)) {
			if (formsOf(word.toLowerCase()).some((form) => words.has(form))) add(index, index + word.length);
			continue;
		}
		const characters = [...word];
		let at = index;
		characters.forEach((character, place) => {
			const pair = character + (characters[place + 1] ?? "");
			if (words.has(character)) add(at, at + character.length);
			if (words.has(pair)) add(at, at + pair.length);
			at += character.length;
		});
	}
	return places;
}

/** @param {string[]} characters */
function pairsOf(characters) {
	if (characters.length === 1) return characters;
	const pairs = characters.slice(1).map((character, place) => characters[place] + character);
	return pairs.filter((pair) => !IGNORED.has(pair) && !IS_GRAMMAR.test(pair));
}

/** The word, and what it may be a form of; none for one that is ignored. @param {string} word */
function formsOf(word) {
	if (IGNORED.has(word) || (word.length < 3 && !/\p{N}/u.test(word))) return [];
	const forms = [word];
	for (const ending of ENDINGS) {
		if (word.length < ending.length + 3 || !word.endsWith(ending)) continue;
		const stem = word.slice(0, -ending.length);
		forms.push(stem);
		if (/^(ed|ers?|ings?)$/.test(ending)) forms.push(`${stem}e`, stem.replace(/(.)\1$/u, "$1"));
	}
	if (/..ies$/.test(word)) forms.push(`${word.slice(0, -3)}y`);
	return forms;
}
