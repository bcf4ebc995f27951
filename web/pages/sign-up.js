import { useState } from "preact/hooks";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { config } from "../app/config.js";
import { accept, tokenOf } from "../app/invitations.js";
import { navigate } from "../app/router.js";
import * as session from "../app/session.js";
import { OpenPage } from "../components/open-page.js";
import { attempt, Button, Failure, Field } from "../components/ui.js";

/** @param {{ query: URLSearchParams }} props */
export function Page({ query }) {
	const invited = query.get("invitation") ?? "";
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const [invitation, setInvitation] = useState(invited);
	const [error, setError] = useState(/** @type {any} */ (null));
	const [isBusy, setBusy] = useState(false);
	const [isSent, setSent] = useState(false);
	/** @param {Event} event */
	const onSubmit = async (event) => {
		event.preventDefault();
		if (isBusy) return;
		setBusy(true);
		setError(null);
		try {
			const token = tokenOf(invitation);
			if ((await session.signUp(email, password, token)) === "verify") return setSent(true);
			// Whoever signs up with an invitation has accepted it; one that cannot be says why at its own page.
			navigate(token ? `/invitation/${encodeURIComponent(token)}` : "/", { replace: true });
			if (token) await attempt(() => accept(token));
		} catch (why) {
			setError(why);
		} finally {
			setBusy(false);
		}
	};
	const fields = error instanceof session.FormError ? error.fields : {};
	if (isSent) return html`<${OpenPage} title=${t("verify.title")}><p role="status">${t("verify.sent", { email })}</p><//>`;
	return html`<${OpenPage} title=${t("signUp.title")}>
		${invited ? html`<p class="dim">${t("signUp.invited")}</p>` : !config.openSignup && html`<p class="dim">${t("signUp.closed")}</p>`}
		<form onSubmit=${onSubmit} class="form">
			${error && !(error instanceof session.FormError) && html`<${Failure} error=${error} />`}
			${fields[""] && html`<p class="error" role="alert">${fields[""]}</p>`}
			${!config.openSignup && html`<${Field} label=${t("signUp.invitation")} value=${invitation} onValue=${setInvitation} autocomplete="off" />`}
			<${Field} label=${t("signIn.email")} type="email" autocomplete="username" required value=${email} onValue=${setEmail} error=${fields.email} data-focus="" />
			<${Field} label=${t("signIn.password")} type="password" autocomplete="new-password" required minlength="8" value=${password} onValue=${setPassword} error=${fields.password} hint=${t("signUp.passwordHint")} />
			<${Button} kind="primary wide" type="submit" isBusy=${isBusy}>${t("signUp.do")}<//>
		</form>
		<p>${t("signUp.have")} <a href="/sign-in">${t("signIn.do")}</a></p>
	<//>`;
}
