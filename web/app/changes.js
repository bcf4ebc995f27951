/*
 * What happens elsewhere: other tabs tell at once; for other devices the server is asked now and then, while
 * the page is looked at.
 */
import { refreshChats } from "./chats.js";
import { openConversation, shown } from "./conversation.js";
import { onChange } from "./tabs.js";

const EVERY_MS = 8_000;

/** Begin to look. @returns {() => void} ends it */
export function startChanges() {
	const look = async () => {
		if (document.hidden || !navigator.onLine) return;
		await Promise.allSettled([refreshChats(), openConversation(shown.value)?.refresh()]);
	};
	const timer = setInterval(look, EVERY_MS);
	const back = () => look();
	addEventListener("focus", back);
	addEventListener("online", back);
	document.addEventListener("visibilitychange", back);
	const end = onChange((what, id) => {
		if (what === "chats" || what === "chat") refreshChats().catch(() => {});
		if (what === "chat") openConversation(id)?.refresh().catch(() => {});
	});
	return () => {
		clearInterval(timer);
		removeEventListener("focus", back);
		removeEventListener("online", back);
		document.removeEventListener("visibilitychange", back);
		end();
	};
}
