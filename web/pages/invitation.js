import { useEffect, useState } from "preact/hooks";
import { post } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { accept, tokenOf } from "../app/invitations.js";
import { navigate } from "../app/router.js";
import { load, me, state } from "../app/session.js";
import { OpenPage } from "../components/open-page.js";
import { Button, Failure, Field, note } from "../components/ui.js";

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const isTyped = params.token === "enter";
	const [typed, setTyped] = useState("");
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const [found, setFound] = useState(/** @type {any} */ (null));
	const { token } = params;
	const isIn = state.value === "in";
	useEffect(() => {
		setFound(null);
		setError(null);
		if (isIn && !isTyped) post("invitations/find/", { token }).then(setFound, setError);
	}, [token, isIn]);
	/** @param {boolean} isAccepted */
	const answer = async (isAccepted) => {
		setError(null);
		try {
			if (isAccepted) return await accept(token);
			await post("invitations/decline/", { token });
			await load();
			note(t("invitation.declined"));
			navigate("/", { replace: true });
		} catch (why) {
			setError(why);
		}
	};
	/** @param {Event} event */
	const onTyped = (event) => {
		event.preventDefault();
		navigate(`/invitation/${encodeURIComponent(tokenOf(typed))}`);
	};
	if (!isIn)
		return html`<${OpenPage} title=${t("invitation.title")}>
			<p>${t("invitation.text")} ${t("invitation.signIn")}</p>
			<p class="actions"><a class="button" href=${`/sign-in?next=${encodeURIComponent(`/invitation/${params.token}`)}`}>${t("signIn.do")}</a><a class="button primary" href=${`/sign-up?invitation=${encodeURIComponent(params.token)}`}>${t("signUp.title")}</a></p>
		<//>`;
	if (isTyped)
		return html`<${OpenPage} title=${t("invitation.title")}>
			<form class="form" onSubmit=${onTyped}>
				<${Field} label=${t("signUp.invitation")} value=${typed} onValue=${setTyped} autocomplete="off" required data-focus="" />
				<p class="actions"><${Button} kind="primary" type="submit">${t("invitation.next")}<//></p>
			</form>
			<p><a href="/">${t("back")}</a></p>
		<//>`;
	return html`<${OpenPage} title=${t("invitation.title")}>
		${found && html`<p>${t("invitation.from", found)}</p>`}
		<p class="dim">${t("invitation.as", { email: me.value?.email ?? "" })}</p>
		${Boolean(error) && html`<${Failure} error=${error} />`}
		${found && html`<p class="actions"><${Button} onClick=${() => answer(false)}>${t("invitation.decline")}<//><${Button} kind="primary" onClick=${() => answer(true)}>${t("invitation.accept")}<//></p>`}
		<p><a href="/">${t("back")}</a></p>
	<//>`;
}
