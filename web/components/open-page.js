/* The frame of pages for people who are not signed in. */
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { LANGUAGES, locale, t, useLocale } from "../app/i18n.js";
import { Logo } from "./sidebar.js";
import { useTitle } from "./ui.js";

/** @param {{ title: string, children?: any }} props */
export function OpenPage({ title, children }) {
	useTitle(title);
	return html`<div class="open-page">
		<main class="open-card" id="content" tabindex="-1">
			<p class="open-brand"><${Logo} /><span>${config.name}</span></p>
			<h1>${title}</h1>
			${children}
		</main>
		<footer class="open-foot">
			<span class="dim">${t("signIn.welcome")}</span>
			<span class="languages" role="group" aria-label=${t("theme.language")}>${Object.entries(LANGUAGES).map(([name, { name: label }]) => html`<button type="button" class="link" lang=${name} aria-pressed=${locale.value === name} onClick=${() => useLocale(name)}>${label}</button>`)}</span>
		</footer>
	</div>`;
}
