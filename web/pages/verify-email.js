import { useState } from "preact/hooks";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { FormError, load, verifyEmail } from "../app/session.js";
import { OpenPage } from "../components/open-page.js";
import { Button, Failure } from "../components/ui.js";

/** Confirming takes a click, since programs that look into mails follow links. @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const [state, setState] = useState(/** @type {"asked" | "done" | "bad"} */ ("asked"));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const confirm = async () => {
		setError(null);
		try {
			await verifyEmail(params.key);
			await load();
			setState("done");
		} catch (why) {
			if (why instanceof FormError) setState("bad");
			else setError(why);
		}
	};
	return html`<${OpenPage} title=${t("verify.title")}>
		${Boolean(error) && html`<${Failure} error=${error} />`}
		${state === "asked" && html`<p>${t("verify.text")}</p><p class="actions"><${Button} kind="primary" onClick=${confirm}>${t("verify.do")}<//></p>`}
		${state !== "asked" && html`<p role="status">${t(state === "done" ? "verify.done" : "verify.bad")}</p><p><a href="/sign-in">${t("signIn.do")}</a></p>`}
	<//>`;
}
