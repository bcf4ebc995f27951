/* The form to sign in: a page of its own, or a dialog over what somebody was doing when the session ended. */
import { useEffect, useState } from "preact/hooks";
import { csrfToken } from "../app/api.js";
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import * as session from "../app/session.js";
import { useForm } from "./forms.js";
import { Button, Dialog, Field } from "./ui.js";

/** @param {{ onDone: () => void, email?: string, next?: string }} props */
export function SignInForm({ onDone, email: given = "", next = "/" }) {
	const [mustVerify, setMustVerify] = useState(false);
	const form = useForm({ email: given, password: "" }, async ({ email, password }) => {
		if ((await session.signIn(email, password)) === "verify") setMustVerify(true);
		else onDone();
	});
	useEffect(() => {
		session.loadIdentityProviders().catch(() => {});
	}, []);
	if (mustVerify) return html`<p role="status">${t("verify.sent", { email: form.given.email })}</p>`;
	const wrong = form.said("") ?? form.said("password");
	return html`<form onSubmit=${form.onSubmit} class="form">
		${form.failure}
		${wrong && html`<p class="error" role="alert">${wrong}</p>`}
		<${Field} label=${t("signIn.email")} type="email" autocomplete="username" required ...${form.field("email")} data-focus=${given ? undefined : ""} readonly=${Boolean(given)} />
		<${Field} label=${t("signIn.password")} type="password" autocomplete="current-password" required value=${form.given.password} onValue=${form.set("password")} />
		<${Button} kind="primary wide" type="submit" isBusy=${form.isBusy}>${t("signIn.do")}<//>
		${session.identityProviders.value.length > 0 && html`<p class="or"><span>${t("signIn.or")}</span></p>`}
		${session.identityProviders.value.map((each) => html`<${Button} class="wide" onClick=${() => leaveFor(each.id, next)}>${t("signIn.with", { name: each.name })}<//>`)}
		<p class="dim">${config.sendsMail ? html`<a href="/reset-password">${t("signIn.forgot")}</a>` : t("signIn.forgotNoMail")}</p>
	</form>`;
}

/** Off to the identity provider, by a form, as allauth wants it. @param {string} provider @param {string} next */
function leaveFor(provider, next) {
	const form = document.createElement("form");
	form.method = "post";
	form.action = "/_allauth/browser/v1/auth/provider/redirect";
	const fields = { provider, process: "login", callback_url: new URL(next, location.origin).href, csrfmiddlewaretoken: csrfToken() };
	for (const [name, value] of Object.entries(fields)) {
		const input = document.createElement("input");
		Object.assign(input, { type: "hidden", name, value });
		form.append(input);
	}
	document.body.append(form);
	form.submit();
}

/** The session ended while the page was used: what was being done goes on after signing in. */
export function SignInAgain() {
	const person = session.me.value;
	return html`<${Dialog} title=${t("signIn.again.title")} onClose=${() => {}} isStubborn=${true} class="small">
		<p>${t("signIn.again.text")}</p>
		<${SignInForm} email=${person?.email ?? ""} onDone=${session.resume} />
	<//>`;
}
