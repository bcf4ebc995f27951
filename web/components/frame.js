/* What stands around the pages of somebody who is signed in: the side bar, shortcuts, dialogs of the whole page. */
import { useEffect, useState } from "preact/hooks";
import { loadAssistants } from "../app/assistants.js";
import { loadChats } from "../app/chats.js";
import { startChanges } from "../app/changes.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { navigate } from "../app/router.js";
import { addShortcut, printed, shortcuts } from "../app/shortcuts.js";
import { keep, recall } from "../app/storage.js";
import { AppearanceDialog } from "./appearance.js";
import { Sidebar } from "./sidebar.js";
import { attempt, Dialog, IconButton } from "./ui.js";

const NARROW = matchMedia("(max-width: 800px), (max-width: 960px) and (max-height: 480px)");

/** @param {{ children?: any }} props */
export function Frame({ children }) {
	const [isNarrow, setNarrow] = useState(NARROW.matches);
	const [isOpen, setOpen] = useState(!NARROW.matches && recall("sidebar", true));
	const [dialog, setDialog] = useState(/** @type {"shortcuts" | "appearance" | null} */ (null));
	useEffect(() => {
		attempt(() => Promise.all([loadChats(), loadAssistants()]));
		return startChanges();
	}, []);
	useEffect(() => {
		const listen = () => {
			setNarrow(NARROW.matches);
			setOpen(!NARROW.matches && recall("sidebar", true));
		};
		NARROW.addEventListener("change", listen);
		return () => NARROW.removeEventListener("change", listen);
	}, []);
	/** @param {boolean} next */
	const show = (next) => {
		setOpen(next);
		if (!isNarrow) keep("sidebar", next);
		requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector(next ? "#sidebar a" : ".sidebar-open"))?.focus());
	};
	useEffect(() => {
		const all = [
			addShortcut({ keys: "Mod+/", label: "shortcuts.help", act: () => setDialog("shortcuts") }),
			addShortcut({ keys: "Mod+Shift+O", label: "shortcuts.new", act: () => navigate("/") }),
			addShortcut({
				keys: "Mod+K",
				label: "shortcuts.search",
				act: () => {
					setOpen(true);
					requestAnimationFrame(() => document.getElementById("chat-search")?.focus());
				},
			}),
			addShortcut({ keys: "Mod+B", label: "shortcuts.sidebar", act: () => show(!isOpen) }),
		];
		return () => all.forEach((end) => end());
	});
	const onNavigate = () => isNarrow && setOpen(false);
	/** @param {KeyboardEvent} event */
	const onKeyDown = (event) => event.key === "Escape" && isNarrow && isOpen && !event.defaultPrevented && show(false);
	return html`<div class=${`frame ${isOpen ? "with-sidebar" : ""}`}>
		${isOpen && isNarrow && html`<div class="shade" onClick=${() => show(false)}></div>`}
		${isOpen && html`<div class="sidebar-place" onKeyDown=${onKeyDown}><${Sidebar} onNavigate=${onNavigate} onAppearance=${() => setDialog("appearance")} onShortcuts=${() => setDialog("shortcuts")} onClose=${() => show(false)} /></div>`}
		<div class="content" inert=${isOpen && isNarrow}>
			${!isOpen && html`<${IconButton} icon="menu" class="sidebar-open" label=${t("nav.open")} aria-expanded="false" onClick=${() => show(true)} />`}
			${children}
		</div>
		${dialog === "shortcuts" && html`<${ShortcutsDialog} onClose=${() => setDialog(null)} />`}
		${dialog === "appearance" && html`<${AppearanceDialog} onClose=${() => setDialog(null)} />`}
	</div>`;
}

/** @param {{ keys: string }} props */
const Keys = ({ keys }) => html`<span class="keys">${printed(keys).map((key) => html`<kbd>${key}</kbd>`)}</span>`;

/** @param {{ onClose: () => void }} props */
function ShortcutsDialog({ onClose }) {
	return html`<${Dialog} title=${t("shortcuts.title")} onClose=${onClose} class="small">
		<dl class="shortcuts">
			${shortcuts().map((each) => html`<div key=${each.keys}><dt>${t(each.label)}</dt><dd><${Keys} keys=${each.keys} /></dd></div>`)}
		</dl>
		<h3>${t("shortcuts.inComposer")}</h3>
		<dl class="shortcuts">
			<div><dt>${t("shortcuts.send")}</dt><dd><${Keys} keys="Enter" /></dd></div>
			<div><dt>${t("shortcuts.newline")}</dt><dd><${Keys} keys="Shift+Enter" /></dd></div>
			<div><dt>${t("shortcuts.mention")}</dt><dd><${Keys} keys="@" /></dd></div>
		</dl>
	<//>`;
}
