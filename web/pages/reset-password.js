import { useState } from "preact/hooks";
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { askForReset, resetPassword } from "../app/session.js";
import { useForm } from "../components/forms.js";
import { OpenPage } from "../components/open-page.js";
import { Button, Field } from "../components/ui.js";

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const [isDone, setDone] = useState(false);
	const form = useForm({ email: "", password: "" }, async ({ email, password }) => {
		await (params.key ? resetPassword(params.key, password) : askForReset(email));
		setDone(true);
	});
	const foot = html`<p><a href="/sign-in">${t("signIn.do")}</a></p>`;
	if (!params.key && !config.sendsMail) return html`<${OpenPage} title=${t("reset.title")}><p>${t("reset.noMail")}</p>${foot}<//>`;
	if (isDone) return html`<${OpenPage} title=${t("reset.title")}><p role="status">${params.key ? t("reset.done") : t("reset.sent", { email: form.given.email })}</p>${foot}<//>`;
	return html`<${OpenPage} title=${t("reset.title")}>
		${!params.key && html`<p class="dim">${t("reset.text")}</p>`}
		<form onSubmit=${form.onSubmit} class="form">
			${form.failure}
			${form.said("key") && html`<p class="error" role="alert">${t("reset.bad")}</p>`}
			${
				params.key
					? html`<${Field} label=${t("reset.new")} type="password" autocomplete="new-password" required minlength="8" ...${form.field("password")} hint=${t("signUp.passwordHint")} data-focus="" />`
					: html`<${Field} label=${t("signIn.email")} type="email" autocomplete="username" required ...${form.field("email")} data-focus="" />`
			}
			<${Button} kind="primary wide" type="submit" isBusy=${form.isBusy}>${t(params.key ? "reset.do" : "reset.send")}<//>
		</form>
		${foot}
	<//>`;
}
