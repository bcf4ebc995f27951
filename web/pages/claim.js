import { post } from "../app/api.js";
import { loadChats } from "../app/chats.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { useForm } from "../components/forms.js";
import { Button, Field, note, useTitle } from "../components/ui.js";

/** Somebody who talked to a public assistant as a guest takes these chats along. */
export function Page() {
	useTitle(t("claim.title"));
	const form = useForm({ token: "" }, async ({ token }) => {
		const { chats } = await post("me/claim/", { token: token.trim() });
		note(t("claim.done", { count: chats }));
		await loadChats();
		navigate("/");
	});
	return html`<main class="page narrow" id="content" tabindex="-1">
		<h1>${t("claim.title")}</h1>
		<p class="dim">${t("claim.text")}</p>
		<form onSubmit=${form.onSubmit} class="form">
			${form.failure}
			<${Field} label=${t("claim.token")} required value=${form.given.token} onValue=${form.set("token")} autocomplete="off" data-focus="" />
			<${Button} kind="primary" type="submit" isBusy=${form.isBusy}>${t("claim.do")}<//>
		</form>
	</main>`;
}
