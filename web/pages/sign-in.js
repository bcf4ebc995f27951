import { useEffect } from "preact/hooks";
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { state } from "../app/session.js";
import { OpenPage } from "../components/open-page.js";
import { SignInForm } from "../components/sign-in-form.js";

/** @param {{ query: URLSearchParams }} props */
export function Page({ query }) {
	const wanted = query.get("next") ?? "/";
	// Only addresses of this page: `//elsewhere` is none.
	const next = /^\/(?![/\\])/.test(wanted) ? wanted : "/";
	const goOn = () => navigate(next, { replace: true });
	useEffect(() => {
		if (state.value === "in") goOn();
	}, []);
	return html`<${OpenPage} title=${t("signIn.title")}>
		<${SignInForm} onDone=${goOn} next=${next} />
		<p>${t("signIn.noAccount")} <a href="/sign-up">${t(config.openSignup ? "signIn.toSignUp" : "signIn.toSignUpInvited")}</a></p>
	<//>`;
}
