/* One document of a library: what is known of it, its chunks, its text. */
import { useState } from "preact/hooks";
import { get } from "../app/api.js";
import { html } from "../app/html.js";
import { duration, number, t, time } from "../app/i18n.js";
import { STAGES } from "../app/uploads.js";
import { Listed, useList, useRow } from "../components/lists.js";
import { attempt, Button, Failure, useTitle, Waiting } from "../components/ui.js";

const SHOWN_CHARS = 50_000;

/** @param {{ params: Record<string, string> }} props */
export function Page({ params }) {
	const { row: document, error, refresh } = useRow(`documents/${params.document}/`);
	const chunks = useList(`documents/${params.document}/chunks/?limit=50`);
	const [text, setText] = useState(/** @type {string | null} */ (null));
	const [isWhole, setWhole] = useState(false);
	useTitle(document?.name ?? "");
	const facts = document
		? [
				[t("document.status"), t(/** @type {any} */ (`ledger.${document.status}`))],
				[t("document.kind"), document.mime_type],
				[t("document.source"), document.source || document.path],
				[t("document.chunks"), number(document.progress.chunks)],
				[t("document.added"), time(document.created_at)],
				[t("document.timings"), STAGES.filter((stage) => stage in document.timings).map((stage) => `${t(/** @type {any} */ (`stage.${stage}`))} ${duration(document.timings[stage])}`).join(", ")],
			].filter(([, value]) => value)
		: [];
	return html`<main class="page" id="content" tabindex="-1">
		<p class="crumbs"><a href=${`/libraries/${params.id}`}>${t("document.back")}</a></p>
		<h1 dir="auto">${document?.name ?? t("document.title")}</h1>
		${Boolean(error) && !document && html`<${Failure} error=${error} onAgain=${refresh} />`}
		${!document && !error && html`<${Waiting} />`}
		${document?.error && html`<p class="failure">${document.error}</p>`}
		<dl class="fact-list">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}</dl>
		${
			document &&
			html`<section class="page-part" aria-labelledby="chunks">
				<h2 id="chunks">${t("document.chunks")}</h2>
				<p class="dim">${t("document.chunks.about")}</p>
				<${Listed} list=${chunks} empty=${t("document.noChunks")}>
					<ol class="passages">${chunks.rows?.map(
						(chunk) => html`<li key=${chunk.id} class="found"><p class="dim small">${[t("document.chunk", { number: chunk.order + 1 }), chunk.heading, chunk.page && t("answer.page", { page: chunk.page }), t("document.tokens", { count: chunk.tokens })].filter(Boolean).join(" · ")}</p><blockquote dir="auto">${chunk.content}</blockquote></li>`,
					)}</ol>
				<//>
			</section>
			<section class="page-part" aria-labelledby="text">
				<h2 id="text">${t("document.text")}</h2>
				${
					text === null
						? html`<${Button} onClick=${() => attempt(async () => setText((await get(`documents/${params.document}/text/`)).text))}>${t("document.showText")}<//>`
						: html`<pre class="document-text" dir="auto" tabindex="0" aria-label=${t("document.text")}>${isWhole ? text : text.slice(0, SHOWN_CHARS)}</pre>
							${!isWhole && text.length > SHOWN_CHARS && html`<p><${Button} onClick=${() => setWhole(true)}>${t("document.whole")}<//></p>`}`
				}
			</section>`
		}
	</main>`;
}
