/* Words in the person's language. A language is one file in locales/ with the keys of en.js. */
import { computed, signal } from "@preact/signals";
import { words as english } from "../locales/en.js";
import { config } from "./config.js";
import { keep, recall } from "./storage.js";

/** @typedef {keyof typeof english} Key */
/** @typedef {string | Partial<Record<Intl.LDMLPluralRule, string>>} Words */
/** @typedef {Record<string, Words>} Catalogue */

/** @type {Record<string, { name: string, load: () => Promise<{ words: Catalogue }> }>} */
export const LANGUAGES = {
	en: { name: "English", load: () => Promise.resolve({ words: english }) },
	de: { name: "Deutsch", load: () => import("../locales/de.js") },
	zh: { name: "中文", load: () => import("../locales/zh.js") },
};

/** @param {string} wanted */
const known = (wanted) => Object.keys(LANGUAGES).find((each) => wanted.toLowerCase().startsWith(each));
const preferred = () => [recall("locale", ""), ...navigator.languages].map(known).find(Boolean) ?? known(config.language) ?? "en";

export const locale = signal("en");
const catalogue = signal(/** @type {Catalogue} */ (english));
/** The language as it is written where the person is: days stand before months in Britain. */
const region = computed(() => navigator.languages.find((each) => known(each) === locale.value) ?? locale.value);
const plural = computed(() => new Intl.PluralRules(locale.value));

/** @param {string} [chosen] */
export async function useLocale(chosen) {
	const name = chosen ?? preferred();
	if (chosen) keep("locale", chosen);
	const { words } = await LANGUAGES[name].load();
	catalogue.value = words;
	locale.value = name;
	document.documentElement.lang = name === "zh" ? "zh-Hans" : name;
}

/** @param {string} text @returns {text is Key} */
export const isKey = (text) => text in english;

/**
 * The words for a key, with `{name}` replaced by what is given, `{platform}` by the installation's name; `count` chooses among plurals.
 * @param {Key} key
 * @param {Record<string, string | number>} [given]
 */
export function t(key, given = {}) {
	const found = catalogue.value[key] ?? english[key];
	const text = typeof found === "string" ? found : (found[plural.value.select(Number(given.count))] ?? found.other ?? key);
	return text.replace(/\{(\w+)\}/g, (whole, name) => {
		const value = name === "platform" ? config.name : given[name];
		return value === undefined ? whole : typeof value === "number" ? value.toLocaleString(region.value) : value;
	});
}

/** @param {string | Date} time @param {Intl.DateTimeFormatOptions} [how] */
export const date = (time, how = { dateStyle: "medium" }) => new Intl.DateTimeFormat(region.value, how).format(new Date(time));
/** @param {string | Date} time */
export const time = (time) => date(time, { dateStyle: "medium", timeStyle: "short" });
/** Of today the time alone. @param {string} at */
export const moment = (at) => (new Date(at).toDateString() === new Date().toDateString() ? date(at, { timeStyle: "short" }) : time(at));
/** @param {number} value @param {Intl.NumberFormatOptions} [how] */
export const number = (value, how) => new Intl.NumberFormat(region.value, how).format(value);

/** An amount in the installation's currency. @param {number} value */
export const money = (value) => `${number(value, { maximumFractionDigits: 4 })}\u00a0${config.currency}`;

/** "a, b, and c". @param {string[]} names */
export const list = (names) => new Intl.ListFormat(locale.value).format(names);

/** @param {number} bytes */
export function size(bytes) {
	const [value, unit] = bytes < 1e3 ? [bytes, "byte"] : bytes < 1e6 ? [bytes / 1e3, "kilobyte"] : [bytes / 1e6, "megabyte"];
	return number(Number(value), { style: "unit", unit: String(unit), unitDisplay: "short", maximumFractionDigits: 1 });
}

/** @param {number} ms */
export const duration = (ms) =>
	ms < 1000
		? number(Math.round(ms), { style: "unit", unit: "millisecond", unitDisplay: "short" })
		: number(ms / 1000, { style: "unit", unit: "second", unitDisplay: "short", maximumFractionDigits: 1 });
