import { useState } from "preact/hooks";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { config } from "../app/config.js";
import { tokenOf } from "../app/invitations.js";
import { navigate } from "../app/router.js";
import * as session from "../app/session.js";
import { useForm } from "../components/forms.js";
import { OpenPage } from "../components/open-page.js";
import { Button, Field } from "../components/ui.js";

/** @param {{ query: URLSearchParams }} props */
export function Page({ query }) {
	const invited = query.get("invitation") ?? "";
	const [isSent, setSent] = useState(false);
	const form = useForm({ email: "", password: "", invitation: invited }, async ({ email, password, invitation }) => {
		const token = tokenOf(invitation);
		if ((await session.signUp(email, password, token)) === "verify") setSent(true);
		else navigate(token ? `/invitation/${encodeURIComponent(token)}` : "/", { replace: true });
	});
	if (isSent) return html`<${OpenPage} title=${t("verify.title")}><p role="status">${t("verify.sent", { email: form.given.email })}</p><//>`;
	return html`<${OpenPage} title=${t("signUp.title")}>
		${invited ? html`<p class="dim">${t("signUp.invited")}</p>` : !config.openSignup && html`<p class="dim">${t("signUp.closed")}</p>`}
		<form onSubmit=${form.onSubmit} class="form">
			${form.failure}
			${form.said("") && html`<p class="error" role="alert">${form.said("")}</p>`}
			${!config.openSignup && html`<${Field} label=${t("signUp.invitation")} ...${form.field("invitation")} autocomplete="off" />`}
			<${Field} label=${t("signIn.email")} type="email" autocomplete="username" required ...${form.field("email")} data-focus="" />
			<${Field} label=${t("signIn.password")} type="password" autocomplete="new-password" required minlength="8" ...${form.field("password")} hint=${t("signUp.passwordHint")} />
			<${Button} kind="primary wide" type="submit" isBusy=${form.isBusy}>${t("signUp.do")}<//>
		</form>
		<p>${t("signUp.have")} <a href="/sign-in">${t("signIn.do")}</a></p>
	<//>`;
}
