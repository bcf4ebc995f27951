import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { OpenPage } from "../components/open-page.js";

export const Page = () => html`<${OpenPage} title=${t("loginError.title")}>
	<p>${t("loginError.text")}</p>
	<p><a href="/sign-in">${t("signIn.do")}</a></p>
<//>`;
