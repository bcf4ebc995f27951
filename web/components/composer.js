/* Where a person writes: a text, files, and whom to ask; the text is kept for each chat until it is sent. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { assistantOf, assistants } from "../app/assistants.js";
import { attachmentsOf } from "../app/attachments.js";
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { number, t } from "../app/i18n.js";
import { plainText } from "../app/plain-text.js";
import { keep, recall } from "../app/storage.js";
import { focusComposer, hasDrawnKeyboard, Icon, IconButton, isSending, note, wordsOf } from "./ui.js";

/** What was written, and comes back. @typedef {{ text: string, assistantId: string | null, files: import("../app/api.js").StoredFile[] }} Given */

/**
 * @param {object} props
 * @param {string} props.draft the name under which the text is kept
 * @param {string} props.asks the name of the assistant that is asked
 * @param {boolean} props.isBusy
 * @param {boolean} [props.isStopping]
 * @param {() => void} props.onStop
 * @param {(text: string, given: { assistantId: string | null, files: import("../app/api.js").StoredFile[] }) => void} props.onSend
 * @param {Given | null} [props.given] what could not be sent
 */
export function Composer({ draft, asks, isBusy, isStopping, onStop, onSend, given }) {
	const [text, setText] = useState(() => recall(`draft.${draft}`, ""));
	const [mentioned, setMentioned] = useState(/** @type {import("../app/api.js").Assistant | null} */ (null));
	const [isOver, setOver] = useState(false);
	const [mention, setMention] = useState(/** @type {{ start: number, words: string, at: number } | null} */ (null));
	const files = useMemo(() => attachmentsOf(draft), [draft]);
	const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
	const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
	const found = mention ? assistants.value.filter((each) => each.name.toLowerCase().includes(mention.words.toLowerCase())).slice(0, 8) : [];

	// Before the next key is pressed: what is written now belongs to this chat, and to no other.
	useLayoutEffect(() => {
		setText(recall(`draft.${draft}`, ""));
		setMentioned(null);
		setMention(null);
	}, [draft]);
	useEffect(() => {
		if (!given) return;
		// In front of what was written meanwhile.
		write([given.text, text].filter((each) => each.trim()).join("\n\n"));
		files.giveBack(given.files);
		setMentioned(assistantOf(given.assistantId) ?? null);
	}, [given]);
	useFilesDropped(files, setOver);
	useEffect(() => document.getElementById(`mention-${mention?.at}`)?.scrollIntoView({ block: "nearest" }), [mention]);
	useLayoutEffect(() => {
		const element = box.current;
		if (!element || CSS.supports("field-sizing", "content")) return;
		element.style.height = "auto";
		element.style.height = `${element.scrollHeight}px`;
	}, [text]);

	const hasFiles = files.all.value.some((each) => !each.error);
	/** @param {string} next */
	const write = (next) => {
		setText(next);
		keep(`draft.${draft}`, next || null);
	};
	/** @param {any} event */
	const onInput = (event) => {
		const { value, selectionStart } = event.currentTarget;
		write(value);
		const before = /(?:^|\s)@([^\s@]{0,40})$/.exec(value.slice(0, selectionStart));
		setMention(before ? { start: selectionStart - before[1].length - 1, words: before[1], at: 0 } : null);
	};
	/** @param {import("../app/api.js").Assistant} assistant */
	const choose = (assistant) => {
		if (!mention) return;
		write(text.slice(0, mention.start) + text.slice(mention.start + 1 + mention.words.length));
		setMentioned(assistant);
		setMention(null);
		box.current?.focus();
	};
	const send = () => {
		const content = text.trim() ? text : "";
		if ((!content && !hasFiles) || isBusy) return;
		if (!files.isReady.value) return note(t("attach.wait"), true);
		if (content.length > config.maxMessageChars) return note(t("composer.tooLong", { most: number(config.maxMessageChars) }), true);
		write("");
		setMentioned(null);
		onSend(content, { assistantId: mentioned?.id ?? null, files: files.take() });
		focusComposer();
	};
	/** @param {KeyboardEvent} event */
	const onKeyDown = (event) => {
		if (event.isComposing) return;
		if (mention && found.length) {
			const to = { ArrowDown: mention.at + 1, ArrowUp: mention.at - 1 }[event.key];
			if (to !== undefined) {
				event.preventDefault();
				return setMention({ ...mention, at: (to + found.length) % found.length });
			}
			if (event.key === "Enter" || event.key === "Tab") {
				event.preventDefault();
				return choose(found[mention.at]);
			}
			if (event.key === "Escape") {
				event.preventDefault();
				return setMention(null);
			}
		}
		if (isSending(event)) {
			event.preventDefault();
			send();
		}
	};
	/** @param {ClipboardEvent} event */
	const onPaste = (event) => {
		const pasted = event.clipboardData?.files;
		if (!pasted?.length) return;
		event.preventDefault();
		files.add(pasted);
	};
	/** @param {any} event */
	const onPick = (event) => {
		files.add(event.currentTarget.files);
		event.currentTarget.value = "";
		box.current?.focus();
	};
	const stop = () => {
		onStop();
		focusComposer();
	};
	const isOpen = mention !== null && found.length > 0;
	return html`<form
		class=${`composer ${isOver ? "over" : ""}`}
		onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), send())}
	>
		${isOver && html`<p class="drop-here">${t("composer.drop")}</p>`}
		${
			isOpen &&
			html`<ul class="mentions" role="listbox" id="mentions" aria-label=${t("composer.mention")}>
				${found.map(
					(each, i) => html`<li key=${each.id} id=${`mention-${i}`} role="option" aria-selected=${i === mention.at} onMouseDown=${(/** @type {Event} */ event) => (event.preventDefault(), choose(each))}>
						<span class="drop"></span>${each.name}<span class="dim">${plainText(each.description ?? "")}</span>
					</li>`,
				)}
			</ul>`
		}
		<div class="composer-box">
			${
				files.all.value.length > 0 &&
				html`<ul class="attachments" aria-label=${t("attach.list")}>
					${files.all.value.map(
						(each) => html`<li key=${each.key} class=${each.error ? "bad" : ""}>
							${
								each.stored?.mime_type.startsWith("image/")
									? html`<img src=${`/api/v1/files/${each.stored.id}/content/?inline=1`} alt="" />`
									: html`<${Icon} name="document" />`
							}
							<span class="name">${each.file.name}</span>
							${!each.stored && !each.error && html`<progress max="1" value=${each.share} aria-label=${t("attach.progress", { name: each.file.name, percent: number(each.share, { style: "percent" }) })}></progress>`}
							${
								Boolean(each.error) &&
								html`<span class="why" role="alert">${t("attach.failed", { name: each.file.name, why: wordsOf(each.error) })}</span>
									<${IconButton} icon="retry" label=${t("attach.retry", { name: each.file.name })} onClick=${() => files.upload(each.key)} />`
							}
							<${IconButton} icon="close" label=${t("attach.remove", { name: each.file.name })} onClick=${() => files.remove(each.key)} />
						</li>`,
					)}
				</ul>`
			}
			${
				mentioned &&
				html`<p class="mentioned"><span class="drop"></span>${t("composer.asks", { name: mentioned.name })}
					<${IconButton} icon="close" label=${t("composer.asksNot", { name: mentioned.name })} onClick=${() => setMentioned(null)} /></p>`
			}
			<textarea
				id="composer" ref=${box} data-focus=${hasDrawnKeyboard() ? undefined : ""} rows="1" dir="auto" value=${text} placeholder=${asks ? t("composer.placeholder", { name: asks }) : t("composer.placeholder.bare")}
				aria-label=${t("composer.label")} aria-describedby="composer-hint" aria-autocomplete="list" aria-controls=${isOpen ? "mentions" : undefined}
				aria-activedescendant=${isOpen ? `mention-${mention.at}` : undefined}
				onInput=${onInput} onKeyDown=${onKeyDown} onPaste=${onPaste}
			></textarea>
			<div class="composer-row">
				<input type="file" multiple hidden ref=${picker} onChange=${onPick} />
				<${IconButton} icon="attach" label=${t("composer.attach")} onClick=${() => picker.current?.click()} />
				<span class="hint" id="composer-hint">${!hasDrawnKeyboard() && t("composer.hint")}</span>
				${
					isBusy
						? html`<button type="button" class="send stop" disabled=${isStopping} aria-label=${t("composer.stop")} title=${t("composer.stop")} onClick=${stop}><${Icon} name="stop" /></button>`
						: html`<button type="submit" class="send" disabled=${!text.trim() && !hasFiles} aria-label=${t("composer.send")} title=${t("composer.send")}><${Icon} name="send" /></button>`
				}
			</div>
		</div>
	</form>`;
}

/** Files may be dropped anywhere: where nothing takes them, a browser leaves the page and shows them. @param {import("../app/attachments.js").Attachments} files @param {(isOver: boolean) => void} setOver */
function useFilesDropped(files, setOver) {
	useEffect(() => {
		const ends = new AbortController();
		/** @param {string} name @param {(event: DragEvent) => void} act */
		const on = (name, act) =>
			document.addEventListener(
				name,
				(/** @type {any} */ event) => {
					if (!event.dataTransfer?.types.includes("Files") || document.querySelector("dialog[open]")) return;
					event.preventDefault();
					act(event);
				},
				{ signal: ends.signal },
			);
		on("dragover", () => setOver(true));
		on("dragleave", (event) => !event.relatedTarget && setOver(false));
		on("drop", (event) => {
			setOver(false);
			if (event.dataTransfer) files.add(event.dataTransfer.files);
		});
		return () => ends.abort();
	}, [files]);
}
