import { useState } from "preact/hooks";
import { post } from "../app/api.js";
import { loadChats } from "../app/chats.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { Button, Failure, Field, note, useTitle } from "../components/ui.js";

/** Somebody who talked to a public assistant as a guest takes these chats along. */
export function Page() {
	const [token, setToken] = useState("");
	const [error, setError] = useState(/** @type {unknown} */ (null));
	useTitle(t("claim.title"));
	/** @param {Event} event */
	const onSubmit = async (event) => {
		event.preventDefault();
		setError(null);
		try {
			const { chats } = await post("me/claim/", { token: token.trim() });
			note(t("claim.done", { count: chats }));
			await loadChats();
			navigate("/");
		} catch (why) {
			setError(why);
		}
	};
	return html`<main class="page narrow" id="content" tabindex="-1">
		<h1>${t("claim.title")}</h1>
		<p class="dim">${t("claim.text")}</p>
		<form onSubmit=${onSubmit} class="form">
			${Boolean(error) && html`<${Failure} error=${error} />`}
			<${Field} label=${t("claim.token")} required value=${token} onValue=${setToken} autocomplete="off" data-focus="" />
			<${Button} kind="primary" type="submit">${t("claim.do")}<//>
		</form>
	</main>`;
}
