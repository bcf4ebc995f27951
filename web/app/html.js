/* Elements without a build step: html`<p>…</p>` makes what Preact draws. Text in it is never read as HTML. */
import { h } from "preact";
import htm from "htm";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = /** @type {any} */ (htm.bind(/** @type {any} */ (h)));
