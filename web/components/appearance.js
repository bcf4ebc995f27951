/* Theme and language, as this browser keeps them. */
import { useState } from "preact/hooks";
import { html } from "../app/html.js";
import { LANGUAGES, locale, t, useLocale } from "../app/i18n.js";
import { keep, recall } from "../app/storage.js";
import { Dialog } from "./ui.js";

const THEMES = /** @type {const} */ (["system", "light", "dark"]);

/** @param {{ onClose: () => void }} props */
export function AppearanceDialog({ onClose }) {
	const [theme, setTheme] = useState(recall("theme", "system"));
	/** @param {string} name */
	const choose = (name) => {
		setTheme(name);
		keep("theme", name === "system" ? null : name);
		if (name === "system") delete document.documentElement.dataset.theme;
		else document.documentElement.dataset.theme = name;
	};
	return html`<${Dialog} title=${t("theme.title")} onClose=${onClose} class="small">
		<fieldset class="choices">
			<legend>${t("theme.theme")}</legend>
			${THEMES.map((name) => html`<label class="choice"><input type="radio" name="theme" checked=${theme === name} onChange=${() => choose(name)} /><span>${t(`theme.${name}`)}</span></label>`)}
		</fieldset>
		<fieldset class="choices">
			<legend>${t("theme.language")}</legend>
			${Object.entries(LANGUAGES).map(
				([name, { name: label }]) => html`<label class="choice" lang=${name}><input type="radio" name="locale" checked=${locale.value === name} onChange=${() => useLocale(name)} /><span>${label}</span></label>`,
			)}
		</fieldset>
	<//>`;
}
