/* The chats, the pages and the account, beside whatever is shown. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../app/announce.js";
import { get } from "../app/api.js";
import * as store from "../app/chats.js";
import { config } from "../app/config.js";
import { forgetConversation } from "../app/conversation.js";
import { html } from "../app/html.js";
import { date, t } from "../app/i18n.js";
import { current, navigate, routes } from "../app/router.js";
import { me, organizations, signOut, switchOrganization } from "../app/session.js";
import { around, Marked, questionWords } from "./marked.js";
import { attempt, Button, Confirm, Dialog, Failure, Field, Icon, IconButton, keepFocus, Menu, note } from "./ui.js";

/** @typedef {import("../app/chats.js").Chat} Chat */

const DAY_MS = 86_400_000;

/** @param {Chat[]} chats @returns {[import("../app/i18n.js").Key, Chat[]][]} */
function byDay(chats) {
	const today = new Date().setHours(0, 0, 0, 0);
	/** @type {Map<import("../app/i18n.js").Key, Chat[]>} */
	const groups = new Map([["chats.pinned", []], ["chats.today", []], ["chats.yesterday", []], ["chats.week", []], ["chats.month", []], ["chats.older", []]]);
	for (const chat of chats) {
		const at = Date.parse(chat.updated_at);
		const name = chat.pinned
			? "chats.pinned"
			: at >= today ? "chats.today" : at >= today - DAY_MS ? "chats.yesterday" : at >= today - 7 * DAY_MS ? "chats.week" : at >= today - 30 * DAY_MS ? "chats.month" : "chats.older";
		groups.get(name)?.push(chat);
	}
	return [...groups].filter(([, some]) => some.length);
}

/** @param {{ onNavigate: () => void, onAppearance: () => void, onShortcuts: () => void, onClose: () => void }} props */
export function Sidebar({ onNavigate, onAppearance, onShortcuts, onClose }) {
	const [words, setWords] = useState("");
	const pages = routes.value.filter((route) => route.nav);
	return html`<nav class="sidebar" id="sidebar" aria-label=${t("nav.label")}>
		<div class="sidebar-head">
			<a href="/" class="brand" onClick=${onNavigate}><${Logo} /><span>${config.name}</span></a>
			<${IconButton} icon="sidebar" class="sidebar-close" label=${t("nav.close")} onClick=${onClose} />
		</div>
		<a href="/" class="button new-chat" onClick=${onNavigate} aria-current=${current.value.path === "/" ? "page" : undefined}><${Icon} name="add" /><span>${t("chats.new")}</span></a>
		<div class="search">
			<${Icon} name="search" />
			<input type="search" id="chat-search" aria-label=${t("chats.search")} placeholder=${t("chats.search")} value=${words} onInput=${(/** @type {any} */ event) => setWords(event.currentTarget.value)}
				onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && setWords("")} />
			${words && html`<${IconButton} icon="close" label=${t("chats.searchClear")} onClick=${() => (setWords(""), document.getElementById("chat-search")?.focus())} />`}
		</div>
		<div class="sidebar-scroll">
			${words.trim() ? html`<${Results} words=${words.trim()} onNavigate=${onNavigate} />` : html`<${Chats} onNavigate=${onNavigate} />`}
		</div>
		${
			pages.length > 0 &&
			html`<ul class="pages" aria-label=${t("nav.pages")}>
				${pages.map((route) => html`<li key=${route.path}><a href=${route.path} aria-current=${current.value.path.startsWith(route.path) ? "page" : undefined} onClick=${onNavigate}><${Icon} name=${route.nav} /><span>${t(route.title)}</span></a></li>`)}
			</ul>`
		}
		<${Account} onAppearance=${onAppearance} onShortcuts=${onShortcuts} />
	</nav>`;
}

export const Logo = () => (config.logo ? html`<img class="logo" src=${config.logo} alt="" />` : ownLogo());

const ownLogo = () => html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
	<path class="logo-resin" d="M16 2.5c5 5.8 9.5 10.6 9.5 16.5A9.5 9.5 0 0 1 6.5 19c0-5.9 4.5-10.7 9.5-16.5z" />
	<path class="logo-light" d="M11.2 18.5c0-3 1.7-5.6 3.6-8" />
	<circle class="logo-seed" cx="17.5" cy="20" r="2.6" />
</svg>`;

/** @param {{ onNavigate: () => void }} props */
function Chats({ onNavigate }) {
	const groups = byDay(store.chats.value);
	const end = useRef(/** @type {HTMLElement | null} */ (null));
	const hasOlder = store.hasOlder.value;
	useEffect(() => {
		if (!end.current) return;
		const observer = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && attempt(store.loadOlder), { rootMargin: "400px" });
		observer.observe(end.current);
		return () => observer.disconnect();
	}, [hasOlder, store.chats.value.length]);
	if (store.listState.value === "failed") return html`<${Failure} error=${new Error(t("chats.failed"))} onAgain=${() => attempt(store.loadChats)} />`;
	const archive = html`<p class="archive-link"><button type="button" class="link" onClick=${() => ((store.showsArchived.value = !store.showsArchived.value), attempt(store.loadChats))}>
		${t(store.showsArchived.value ? "chats.hideArchived" : "chats.showArchived")}
	</button></p>`;
	return html`<div class="chats" role="group" aria-label=${t("chats.label")}>
		${store.showsArchived.value && html`<h2 class="group-name">${t("chats.archived")}</h2>`}
		${!groups.length && store.listState.value === "ready" && html`<p class="dim none">${t(store.showsArchived.value ? "chats.noneArchived" : "chats.none")}</p>`}
		${groups.map(
			([name, chats]) => html`<section key=${name}>
				<h2 class="group-name">${t(name)}</h2>
				<ul>${chats.map((chat) => html`<${ChatLink} key=${chat.id} chat=${chat} onNavigate=${onNavigate} />`)}</ul>
			</section>`,
		)}
		${hasOlder && html`<p ref=${end}><button type="button" class="link" onClick=${() => attempt(store.loadOlder)}>${t("chats.showOlder")}</button></p>`}
		${archive}
	</div>`;
}

/** @param {{ chat: Chat, onNavigate: () => void }} props */
function ChatLink({ chat, onNavigate }) {
	const [asks, setAsks] = useState(/** @type {"rename" | "delete" | null} */ (null));
	const isShown = current.value.path === `/chats/${chat.id}`;
	const name = store.nameOf(chat);
	return html`<li class=${`chat-link ${isShown ? "shown" : ""}`}>
		<a href=${`/chats/${chat.id}`} aria-current=${isShown ? "page" : undefined} onClick=${onNavigate} title=${name}>
			${chat.pinned && html`<${Icon} name="pin" />`}<span dir="auto">${name}</span>${chat.live_turn_id && html`<span class="dots" aria-hidden="true"></span><span class="unseen">${t("chats.live")}</span>`}
		</a>
		<${ChatMenu} chat=${chat} onRename=${() => setAsks("rename")} onDelete=${() => setAsks("delete")} />
		${asks === "rename" && html`<${Rename} chat=${chat} onClose=${() => setAsks(null)} />`}
		${asks === "delete" && html`<${Confirm} title=${t("chats.delete.title")} text=${t("chats.delete.text", { name })} yes=${t("chats.delete")} isDangerous=${true} onClose=${() => setAsks(null)} onYes=${() => deleteChat(chat)} />`}
	</li>`;
}

/** @param {Chat} chat */
const deleteChat = (chat) =>
	attempt(async () => {
		await store.deleteChat(chat.id);
		forgetConversation(chat.id);
		note(t("chats.deleted"));
		if (current.value.path === `/chats/${chat.id}`) navigate("/");
		else document.getElementById("chat-search")?.focus();
	});

/** @param {{ chat: Chat, onRename: () => void, onDelete: () => void }} props */
export function ChatMenu({ chat, onRename, onDelete }) {
	const name = store.nameOf(chat);
	return html`<${Menu}
		label=${t("chats.actions", { name })}
		items=${[
			{ label: t("chats.rename"), icon: "edit", onSelect: onRename },
			chat.pinned === undefined ? null : { label: t(chat.pinned ? "chats.unpin" : "chats.pin"), icon: "pin", onSelect: () => attempt(() => store.changeChat(chat.id, { pinned: !chat.pinned })) },
			{
						label: t(chat.archived ? "chats.unarchive" : "chats.archive"),
						icon: "archive",
						onSelect: () => attempt(() => store.changeChat(chat.id, { archived: !chat.archived })).then((ok) => (keepFocus(), ok && !chat.archived && note(t("chats.archivedNow")))),
					},
			{ label: t("chats.export"), icon: "export", onSelect: () => attempt(() => exportChat(chat)) },
			{ label: t("chats.delete"), icon: "trash", isDangerous: true, onSelect: onDelete },
		]}
	/>`;
}

/** @param {Chat} chat */
async function exportChat(chat) {
	const whole = await get(`chats/${chat.id}/export/`);
	const link = document.createElement("a");
	link.href = URL.createObjectURL(new Blob([JSON.stringify(whole, null, "\t")], { type: "application/json" }));
	link.download = `${(chat.name || "chat").replace(/[^\p{L}\p{N} _-]/gu, "").trim() || "chat"}.json`;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** @param {{ chat: Chat, onClose: () => void }} props */
export function Rename({ chat, onClose }) {
	const [name, setName] = useState(chat.name);
	/** @param {Event} event */
	const onSubmit = async (event) => {
		event.preventDefault();
		if (await attempt(() => store.changeChat(chat.id, { name }))) {
			announce(t("chats.renamed"));
			onClose();
		}
	};
	return html`<${Dialog} title=${t("chats.rename")} onClose=${onClose} class="small">
		<form onSubmit=${onSubmit}>
			<${Field} label=${t("name")} value=${name} onValue=${setName} maxlength="255" dir="auto" autofocus=${true} />
			<div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit">${t("save")}<//></div>
		</form>
	<//>`;
}

/** @param {{ words: string, onNavigate: () => void }} props */
function Results({ words, onNavigate }) {
	const [found, setFound] = useState(/** @type {{ named: Chat[], said: import("../app/chats.js").Found[] } | null} */ (null));
	const [error, setError] = useState(/** @type {unknown} */ (null));
	useEffect(() => {
		const abort = new AbortController();
		const timer = setTimeout(() => {
			store.searchChats(words, abort.signal).then(
				(results) => {
					setFound(results);
					setError(null);
					announce(t("chats.found", { count: results.named.length + results.said.length }));
				},
				(why) => !abort.signal.aborted && setError(why),
			);
		}, 200);
		return () => {
			clearTimeout(timer);
			abort.abort();
		};
	}, [words]);
	if (error) return html`<${Failure} error=${error} />`;
	if (!found) return html`<p class="dim none"><span class="dots" aria-hidden="true"></span></p>`;
	const sought = questionWords(words);
	const nothing = !found.named.length && !found.said.length;
	return html`<div class="results">
		${nothing && html`<p class="dim none">${t("chats.nothingFound")}</p>`}
		${found.named.length > 0 && html`<h2 class="group-name">${t("chats.named")}</h2><ul>${found.named.map((chat) => html`<${ChatLink} key=${chat.id} chat=${chat} onNavigate=${onNavigate} />`)}</ul>`}
		${
			found.said.length > 0 &&
			html`<h2 class="group-name">${t("chats.said")}</h2>
				<ul>
					${found.said.map(
						({ chat, message }) => html`<li key=${message.id} class="hit">
							<a href=${`/chats/${chat.id}?message=${message.id}`} onClick=${onNavigate}><span class="hit-name" dir="auto">${store.nameOf(chat)}</span><span class="hit-text" dir="auto"><${Marked} text=${around(message.content, sought)} words=${sought} /></span><span class="dim">${date(message.created_at)}</span></a>
						</li>`,
					)}
				</ul>`
		}
	</div>`;
}

/** @param {{ onAppearance: () => void, onShortcuts: () => void }} props */
function Account({ onAppearance, onShortcuts }) {
	const [isSwitched, setSwitched] = useState(false);
	const list = useRef(null);
	const person = me.value;
	if (!person) return null;
	const name = person.name || person.email;
	return html`<div class="account" ref=${list}>
		<${Menu}
			label=${t("account.menu")}
			items=${[
				organizations.value.length > 1 ? { label: t("account.switch"), icon: "user", onSelect: () => setSwitched(true) } : null,
				{ label: t("account.appearance"), icon: "settings", onSelect: onAppearance },
				{ label: t("account.shortcuts"), icon: "help", onSelect: onShortcuts },
				{ label: t("invitation.enter"), icon: "add", onSelect: () => navigate("/invitation/enter") },
				{ label: t("account.signOut"), icon: "close", onSelect: () => attempt(signOut) },
			]}
		>
			<span class="unseen">${t("account.menu")}</span><span class="avatar" aria-hidden="true">${name.slice(0, 1).toUpperCase()}</span>
			<span class="who"><span class="who-name">${name}</span><span class="who-where">${person.organization.name}</span></span>
		<//>
		${
			isSwitched &&
			html`<${Dialog} title=${t("account.switch")} onClose=${() => setSwitched(false)} class="small">
				<ul class="organizations">
					${organizations.value.map(
						(each) => html`<li key=${each.id}><button type="button" class="row" aria-current=${each.id === person.organization.id ? "true" : undefined} onClick=${() => attempt(() => switchOrganization(each.id))}>
							<span>${each.name}</span><span class="dim">${t(/** @type {any} */ (`role.${each.role}`))}</span>${each.id === person.organization.id && html`<${Icon} name="check" />`}
						</button></li>`,
					)}
				</ul>
			<//>`
		}
	</div>`;
}
