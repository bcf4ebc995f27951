/* A file in a conversation: a picture, a sound, or something to download. */
import { html } from "../app/html.js";
import { size, t } from "../app/i18n.js";
import { Icon } from "./ui.js";

/** A file that somebody attached, or that a tool made. @param {{ message: import("../app/api.js").Message }} props */
export function Attachment({ message }) {
	const { file } = message;
	if (!file) return html`<span class="attachment gone"><${Icon} name="document" />${t("message.fileGone")}</span>`;
	const address = `/api/v1/files/${file.id}/content/`;
	if (file.mime_type.startsWith("image/"))
		return html`<a class="picture" href=${`${address}?inline=1`} target="_blank" rel="noopener"><img src=${`${address}?inline=1`} alt=${file.name} loading="lazy" /></a>`;
	if (file.mime_type.startsWith("audio/"))
		return html`<figure class="sound"><figcaption>${file.name}</figcaption><audio controls preload="metadata" src=${address} aria-label=${file.name}></audio></figure>`;
	return html`<a class="attachment" href=${address} download=${file.name}><${Icon} name="document" /><span class="name">${file.name}</span><span class="dim">${size(file.size)}</span></a>`;
}
