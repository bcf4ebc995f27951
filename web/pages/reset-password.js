import { useState } from "preact/hooks";
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { askForReset, FormError, resetPassword } from "../app/session.js";
import { OpenPage } from "../components/open-page.js";
import { Button, Failure, Field } from "../components/ui.js";

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const [value, setValue] = useState("");
	const [error, setError] = useState(/** @type {any} */ (null));
	const [isDone, setDone] = useState(false);
	/** @param {Event} event */
	const onSubmit = async (event) => {
		event.preventDefault();
		setError(null);
		try {
			await (params.key ? resetPassword(params.key, value) : askForReset(value));
			setDone(true);
		} catch (why) {
			setError(why);
		}
	};
	const fields = error instanceof FormError ? error.fields : {};
	const foot = html`<p><a href="/sign-in">${t("signIn.do")}</a></p>`;
	if (!params.key && !config.sendsMail) return html`<${OpenPage} title=${t("reset.title")}><p>${t("reset.noMail")}</p>${foot}<//>`;
	if (isDone) return html`<${OpenPage} title=${t("reset.title")}><p role="status">${params.key ? t("reset.done") : t("reset.sent", { email: value })}</p>${foot}<//>`;
	return html`<${OpenPage} title=${t("reset.title")}>
		${!params.key && html`<p class="dim">${t("reset.text")}</p>`}
		<form onSubmit=${onSubmit} class="form">
			${error && !(error instanceof FormError) && html`<${Failure} error=${error} />`}
			${fields.key && html`<p class="error" role="alert">${t("reset.bad")}</p>`}
			${
				params.key
					? html`<${Field} label=${t("reset.new")} type="password" autocomplete="new-password" required minlength="8" value=${value} onValue=${setValue} error=${fields.password} hint=${t("signUp.passwordHint")} data-focus="" />`
					: html`<${Field} label=${t("signIn.email")} type="email" autocomplete="username" required value=${value} onValue=${setValue} error=${fields.email} data-focus="" />`
			}
			<${Button} kind="primary wide" type="submit">${t(params.key ? "reset.do" : "reset.send")}<//>
		</form>
		${foot}
	<//>`;
}
