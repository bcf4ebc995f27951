/*
 * Amber's chat widget: one public assistant on any web page.
 *
 *   <script src="https://amber.example.com/static/amber-widget.js" data-assistant="<id>" async></script>
 *
 * Optional: data-lang="en", "de" or "zh" (else the browser's), data-accent="#b45309".
 *
 * Asks over REST and follows the answer's events, over lost connections and reloads. What the assistant
 * says becomes text nodes, never HTML; nothing remote is loaded. A page's CSP needs Amber's origin in
 * script-src and connect-src.
 */
(() => {
	"use strict";

	const script = document.currentScript ?? document.querySelector("script[src*='amber-widget'][data-assistant]");
	const assistantId = script?.dataset.assistant?.trim();
	if (!assistantId) return console.warn("Amber: the script tag needs data-assistant.");
	const base = new URL(`../api/v1/public/assistants/${encodeURIComponent(assistantId)}/`, script.src).href;

	// -- Words --

	const WORDS = {
		en: {
			open: (name) => `Chat with ${name}`, close: "Close", log: "Conversation", ask: "Your message",
			placeholder: "Ask something…", send: "Send", stop: "Stop", fresh: "New chat", chats: "Your chats", none: "No chats yet.", you: "You",
			hello: (name) => `Hello! I am ${name}. What would you like to know?`, answering: "Answering…", thinking: "Thinking…", thoughts: "Reasoning",
			tool: (name) => `Looking it up (${name})…`, sources: "Sources", page: (n) => `p. ${n}`,
			again: "Try again", stopped: "Stopped.", copy: "Copy", copied: "Copied", up: "Good answer", down: "Bad answer", thanks: "Thank you",
			attach: "Attach a file", remove: (name) => `Remove ${name}`, uploading: (name) => `${name}: uploading…`, asks: "Suggested questions",
			lost: "Connection lost. Trying again…", foot: "Answers can be wrong.",
			errors: { network: "Could not connect. Check your network connection.", invalid_credential: "This conversation has ended. Start a new chat." },
			other: "Something went wrong.",
		},
		de: {
			open: (name) => `Chat mit ${name}`, close: "Schließen", log: "Unterhaltung", ask: "Ihre Nachricht",
			placeholder: "Stellen Sie eine Frage…", send: "Senden", stop: "Stoppen", fresh: "Neuer Chat", chats: "Ihre Chats", none: "Noch keine Chats.", you: "Sie",
			hello: (name) => `Guten Tag! Ich bin ${name}. Was möchten Sie wissen?`, answering: "Antwortet…", thinking: "Denkt nach…", thoughts: "Gedankengang",
			tool: (name) => `Sieht nach (${name})…`, sources: "Quellen", page: (n) => `S. ${n}`,
			again: "Erneut versuchen", stopped: "Gestoppt.", copy: "Kopieren", copied: "Kopiert", up: "Gute Antwort", down: "Schlechte Antwort", thanks: "Danke",
			attach: "Datei anhängen", remove: (name) => `${name} entfernen`, uploading: (name) => `${name}: wird hochgeladen…`, asks: "Vorgeschlagene Fragen",
			lost: "Verbindung unterbrochen. Neuer Versuch…", foot: "Antworten können falsch sein.",
			errors: {
				network: "Keine Verbindung. Prüfen Sie Ihr Netz.", rate_limited: "Zu viele Fragen. Versuchen Sie es gleich noch einmal.", budget_exceeded: "Das Kontingent für Fragen ist aufgebraucht. Kommen Sie später wieder.",
				not_found: "Dieser Assistent ist nicht mehr verfügbar.", too_large: "Die Datei ist zu groß.", unsupported_media_type: "Diese Art von Datei wird nicht angenommen.", conflict: "Mehr davon sind nicht möglich.",
				invalid_credential: "Diese Unterhaltung ist beendet. Beginnen Sie einen neuen Chat.", forbidden: "Das ist hier nicht erlaubt.",
			},
			other: "Etwas ist schiefgegangen.",
		},
		zh: {
			open: (name) => `与${name}对话`, close: "关闭", log: "对话", ask: "您的消息",
			placeholder: "请输入问题…", send: "发送", stop: "停止", fresh: "新对话", chats: "您的对话", none: "还没有对话。", you: "您",
			hello: (name) => `您好！我是${name}，请问有什么可以帮您？`, answering: "正在回答…", thinking: "正在思考…", thoughts: "思考过程",
			tool: (name) => `正在查询（${name}）…`, sources: "来源", page: (n) => `第 ${n} 页`,
			again: "重试", stopped: "已停止。", copy: "复制", copied: "已复制", up: "回答有帮助", down: "回答没有帮助", thanks: "感谢反馈",
			attach: "添加文件", remove: (name) => `移除 ${name}`, uploading: (name) => `${name}：正在上传…`, asks: "推荐问题",
			lost: "连接已断开，正在重新连接…", foot: "回答可能有误，请注意核实。",
			errors: {
				network: "无法连接，请检查网络。", rate_limited: "提问太频繁，请稍候再试。", budget_exceeded: "提问额度已用完，请稍后再来。",
				not_found: "该助手已不可用。", too_large: "文件过大。", unsupported_media_type: "不支持这种文件。", conflict: "数量已达上限。", invalid_credential: "对话已结束，请重新开始。", forbidden: "此网页不能使用该助手。",
			},
			other: "出错了。",
		},
	};
	const asked = (script.dataset.lang || navigator.language).toLowerCase();
	const lang = Object.keys(WORDS).find((each) => asked.startsWith(each)) ?? "en";
	const words = WORDS[lang];

	// -- Elements --

	/*= shared/markdown.js */

	function icon(path) {
		const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
		const line = document.createElementNS(svg.namespaceURI, "path");
		svg.setAttribute("viewBox", "0 0 24 24");
		svg.setAttribute("aria-hidden", "true");
		line.setAttribute("d", path);
		svg.append(line);
		return svg;
	}

	const ICONS = {
		chat: "M4 5h16v11H9l-5 4z", close: "M6 6l12 12M18 6L6 18", send: "M5 12h13M12 5l7 7-7 7",
		stop: "M7 7h10v10H7z", fresh: "M12 5v14M5 12h14",
		chats: "M4 7h16M4 12h16M4 17h10", copy: "M9 9h11v11H9zM5 15H4V4h11v1", attach: "M20 11l-8 8a5 5 0 0 1-7-7l9-9a3 3 0 0 1 5 5l-9 9",
		up: "M7 11v9H4v-9zl4-8c2 0 2 2 2 3v3h6l-2 10H7", down: "M7 13V4H4v9zl4 8c2 0 2-2 2-3v-3h6L17 4H7",
	};
	const button = (name, label, onclick, extra = {}) =>
		el("button", { type: "button", className: name, title: label, "aria-label": label, onclick, ...extra }, icon(ICONS[name]));

	// -- Amber --

	/* {token, chat, turn, open}, kept in this browser; one that keeps nothing forgets at reload. */
	const KEY = `amber ${base}`;
	const kept = {};
	try { Object.assign(kept, JSON.parse(localStorage.getItem(KEY))); } catch { /* there is no storage */ }

	function keep(changes) {
		Object.assign(kept, changes);
		try { localStorage.setItem(KEY, JSON.stringify(kept)); } catch { /* there is no storage */ }
	}

	/* Amber's error with its status; 0: there was no answer. */
	const refused = (status, error) => ({ code: "other", message: `HTTP ${status}`, ...error, status });

	async function send(method, path, { body, headers, signal } = {}) {
		const given = { ...headers };
		if (kept.token) given.Authorization = `Bearer ${kept.token}`;
		const isForm = body instanceof FormData;
		if (body && !isForm) given["Content-Type"] = "application/json";
		const request = { method, headers: given, credentials: "omit", cache: "no-store", body: isForm ? body : body && JSON.stringify(body), signal };
		let response;
		try { response = await fetch(base + path, request); } catch { throw refused(0, { code: "network" }); }
		if (response.ok) return response;
		throw refused(response.status, (await response.json().catch(() => ({}))).error);
	}

	async function call(method, path, body, headers) {
		const response = await send(method, path, { body, headers });
		return response.status === 204 ? null : response.json();
	}

	async function beGuest() {
		if (!kept.token) keep({ token: (await call("POST", "token/")).token, chat: null, turn: null });
	}

	async function chatId() {
		await beGuest();
		if (!kept.chat) {
			const open = () => call("POST", "chats/");
			const chat = await open().catch(async (error) => {
				if (error.status !== 409) throw error;
				const { results } = await call("GET", "chats/?limit=200"); // as many as there may be: the oldest goes
				await call("DELETE", `chats/${results.at(-1).id}/`);
				return open();
			});
			keep({ chat: chat.id });
		}
		return kept.chat;
	}

	/* Post a question with the files that it is about; a guest or chat that is gone is replaced, once. Returns {message, turn}. */
	async function ask(content, files) {
		const key = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
		const post = async () => {
			const chat = await chatId();
			return call("POST", `chats/${chat}/messages/`, { content, file_ids: files.map(({ id }) => id) }, { "Idempotency-Key": key });
		};
		try {
			return await post();
		} catch (error) {
			if (error.status === 401) keep({ token: null, chat: null });
			else if (error.status === 404 && kept.chat) keep({ chat: null });
			else if (error.status !== 0) throw error;
			return post();
		}
	}

	/*= shared/events.js */

	/*= shared/follow.js */

	/*= shared/fold.js */

	// -- The page --

	const accent = /^#[0-9a-f]{6}$/i.test(script.dataset.accent ?? "") ? script.dataset.accent : "#b45309";
	const [red, green, blue] = [1, 3, 5].map((place) => parseInt(accent.slice(place, place + 2), 16));
	const onAccent = 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? "#1c1917" : "#fff";
	const STYLE = `
:host{all:initial;--accent:${accent};--on-accent:${onAccent};--paper:#fff;--ink:#1c1917;--soft:#f5f5f4;--line:#d6d3d1;--dim:#57534e;--bad:#b91c1c}
@media (prefers-color-scheme:dark){:host{--paper:#1c1917;--ink:#f5f5f4;--soft:#292524;--line:#57534e;--dim:#a8a29e;--bad:#fca5a5}}
*{box-sizing:border-box}
[hidden]{display:none!important}
.root{position:fixed;right:20px;bottom:20px;z-index:2147483000;font:15px/1.5 system-ui,"PingFang SC","Microsoft YaHei",sans-serif;color:var(--ink)}
button{font:inherit;color:inherit;cursor:pointer;border:0;background:none;border-radius:8px;padding:0}
svg{width:22px;height:22px;fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.chat,.send,.stop{background:var(--accent);color:var(--on-accent);display:grid;place-items:center;flex:none}
.said svg,.file svg{width:18px;height:18px}
.acts{display:flex;gap:2px;margin:4px 0 0 -6px;color:var(--dim)}
.acts button,.bare{width:32px;height:32px;display:grid;place-items:center;flex:none}
.acts button:hover,.asks button:hover,.list button:hover,.bare:hover{background:var(--soft)}
.acts [aria-pressed=true]{color:var(--ink)}
.acts [aria-pressed=true] svg{fill:var(--accent)}
.asks{display:flex;flex-direction:column;align-items:flex-start;gap:8px;margin:0 0 16px}
.asks button{border:1px solid var(--dim);border-radius:14px;padding:7px 13px;text-align:left}
.list{list-style:none;padding:0;margin:0 -10px}
.list button{width:100%;text-align:left;padding:10px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.heading,[aria-current=true]{font-weight:650}
.files{display:flex;flex-wrap:wrap;gap:6px;padding:0 12px;font-size:13px}
.file{display:flex;align-items:center;gap:2px;background:var(--soft);border-radius:8px;padding:0 0 0 10px;min-height:32px;overflow-wrap:anywhere}
.files:not(:empty){padding-bottom:8px}
form .bare{width:36px;height:42px;margin-right:-4px;color:var(--dim)}
.chat svg{width:28px;height:28px}
.chat{width:56px;height:56px;border-radius:50%;box-shadow:0 4px 16px #0005}
dialog{position:static;margin:0;padding:0;color:inherit;max-width:none;max-height:none;width:380px;height:min(600px,calc(100vh - 40px));flex-direction:column;background:var(--paper);border:1px solid var(--line);border-radius:16px;overflow:hidden;box-shadow:0 12px 40px #0004}
dialog[open]{display:flex}
header{display:flex;align-items:center;gap:4px;padding:12px 12px 12px 18px;background:var(--accent);color:var(--on-accent)}
h2{font-size:16px;font-weight:600;margin:0;flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
header button{width:36px;height:36px;display:grid;place-items:center}
header button:hover,header [aria-pressed=true]{background:#0002}
header :focus-visible{outline-color:currentColor;outline-offset:-3px}
.log{flex:1;overflow-y:auto;padding:18px;overscroll-behavior:contain;overflow-wrap:anywhere}
.log:focus-visible{outline-offset:-3px}
.said{margin:0 0 16px}
.you{background:var(--soft);border-radius:14px 14px 2px;padding:9px 14px;width:fit-content;margin-left:auto;max-width:85%;white-space:pre-wrap}
.said>:last-child,li>:last-child,blockquote>:last-child{margin-bottom:0}
p,ul,ol,pre,blockquote{margin:0 0 10px}
ul,ol{padding-left:22px}
li>ul,li>ol{margin:2px 0}
a,.again{color:inherit;text-decoration:underline var(--accent) 2px;text-underline-offset:3px}
code{font:13px/1.5 ui-monospace,monospace;background:var(--soft);border-radius:4px;padding:1px 4px}
pre{background:var(--soft);border-radius:8px;padding:10px 12px;overflow-x:auto}
pre code{padding:0;white-space:pre}
blockquote{border-left:3px solid var(--line);padding-left:12px;color:var(--dim)}
.table{overflow-x:auto;margin:0 0 10px}
table{border-collapse:collapse;font:inherit;color:inherit}
th,td{border:1px solid var(--line);padding:4px 9px;text-align:start;vertical-align:top;overflow-wrap:normal}
hr{border:0;border-top:1px solid var(--line)}
.note,.sources,.thoughts{font-size:13px;color:var(--dim)}
.thoughts{margin:0 0 10px}
.thoughts[open]{border-left:3px solid var(--line);padding-left:12px}
summary{cursor:pointer;width:fit-content}
.sources{border-top:1px solid var(--line);padding-top:8px}
.sources ul{list-style:none;padding:0;margin:0}
.note{margin:0 0 16px;display:flex;align-items:center;gap:8px}
.bad{color:var(--bad)}
.again{padding:2px 4px;white-space:nowrap}
.dots::before{content:"";width:8px;height:8px;border-radius:50%;background:var(--accent);animation:beat 1s infinite alternate}
@keyframes beat{to{opacity:.2}}
form{display:flex;align-items:flex-end;gap:8px;padding:10px 12px 6px;border-top:1px solid var(--line)}
textarea{flex:1;font:inherit;color:inherit;background:var(--paper);border:1px solid var(--dim);border-radius:12px;padding:8px 12px;resize:none;min-height:42px;max-height:132px;field-sizing:content}
textarea:focus-visible{outline-width:2px;outline-offset:-1px}
::placeholder{color:var(--dim);opacity:1}
.send,.stop{width:42px;height:42px;border-radius:12px}
.stop svg{fill:currentColor}
footer{font-size:12px;color:var(--dim);text-align:center;padding:0 12px 8px}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (max-width:480px){.open{inset:0}dialog{position:fixed;inset:0;width:100%;height:100%;border:0;border-radius:0}}
@media (pointer:coarse){textarea{font-size:16px}}
@media (prefers-reduced-motion:reduce){.dots::before{animation:none}}
`;

	function embed(card) {
		let turn = null; // {id, state, place} of the answer under way
		let restored = null; // a promise: what was said before is shown
		let files = []; // uploaded, and not sent yet
		let wasAtEnd = true; // of the log: whoever reads there goes on so, also above a keyboard that comes

		const launcher = button("chat", words.open(card.name), () => open(), { "aria-expanded": "false" });
		const log = el("div", { className: "log", role: "log", "aria-live": "off", "aria-label": words.log, tabIndex: 0 });
		const status = el("div", { className: "unseen", role: "status" });
		const input = el("textarea", { rows: 1, id: "ask", maxLength: card.max_message_chars, placeholder: words.placeholder });
		const sender = button("send", words.send, () => submit());
		const stopper = button("stop", words.stop, () => stop(), { hidden: true });
		const lister = button("chats", words.chats, () => (shownList() ? showChat() : list()), { "aria-pressed": "false" });
		const chips = el("div", { className: "files" });
		const picker = el("input", { type: "file", multiple: true, hidden: true, onchange: () => attach() });
		const clip = card.takes_files ? [button("attach", words.attach, () => picker.click()), picker] : [];
		if (clip[0]) clip[0].className = "bare";
		const panel = el(
			"dialog",
			{ "aria-labelledby": "name", oncancel: (event) => (event.preventDefault(), close()), onkeydown: (event) => event.key === "Escape" && close() },
			el("header", {}, el("h2", { id: "name" }, card.name), button("fresh", words.fresh, () => restart()), lister, button("close", words.close, () => close())),
			log,
			status,
			chips,
			el("form", {}, ...clip, el("label", { className: "unseen", htmlFor: "ask" }, words.ask), input, sender, stopper),
			el("footer", {}, words.foot),
		);
		const root = el("div", { className: "root", lang }, launcher, panel);
		input.addEventListener("keydown", (event) => {
			if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
			event.preventDefault();
			submit();
		});

		// Opening and closing: where the panel covers the page, the focus stays inside

		function open(isAsked = true) {
			shown(true);
			if (isAsked && matchMedia("(max-width: 480px)").matches) panel.showModal();
			else panel.show();
			restored ??= restore();
			// A drawn keyboard would cover what is suggested.
			if (isAsked) (matchMedia("(pointer:coarse)").matches ? log : input).focus();
			else document.activeElement.blur();
		}

		function close() {
			panel.close();
			shown(false);
			launcher.focus();
		}

		function shown(isOpen) {
			keep({ open: isOpen });
			root.classList.toggle("open", isOpen);
			launcher.setAttribute("aria-expanded", isOpen);
			launcher.hidden = isOpen;
		}

		// The conversation

		/* What was said before, and the answer that may still be under way. */
		async function restore() {
			lister.setAttribute("aria-pressed", "false");
			log.replaceChildren(said("", markdown(card.greeting || card.description || words.hello(card.name))));
			const { chat, turn: under } = kept;
			if (!chat) return suggest();
			try {
				const { results } = await call("GET", `chats/${chat}/messages/?limit=200`);
				const isUnder = (message) => message.turn_id === under && message.role !== "human";
				for (const message of results) if (!under || !isUnder(message)) log.append(...shownMessage(message));
				if (under) watch(under, results.findLast((message) => message.role === "human")?.id);
			} catch (error) {
				if (error.status === 401) keep({ token: null });
				if (error.status === 401 || error.status === 404) keep({ chat: null, turn: null });
				else failed(error, () => (restored = restore()));
			} finally {
				toEnd();
			}
		}

		function suggest() {
			const each = (text) => el("button", { type: "button", onclick: () => ((input.value = text), submit()) }, text);
			if (card.suggested_questions?.length) log.append(el("div", { className: "asks", role: "group", "aria-label": words.asks }, ...card.suggested_questions.map(each)));
		}

		/* Leave this chat, whose answer goes on, for another one or for a new one. */
		function enter(chat, under) {
			turn = null;
			keep({ chat, turn: under });
			busy(false);
			restored = restore();
			input.focus();
		}

		const restart = () => enter(null, null);
		const shownList = () => lister.ariaPressed === "true";
		const showChat = () => enter(kept.chat, kept.turn);

		async function list() {
			turn = null;
			busy(false);
			lister.setAttribute("aria-pressed", "true");
			log.replaceChildren(el("p", { className: "heading", role: "heading", "aria-level": 3 }, words.chats));
			try {
				const { results } = kept.token ? await call("GET", "chats/?limit=200") : { results: [] };
				const each = ({ id, name, live_turn_id: live }) =>
					el("li", {}, el("button", { type: "button", onclick: () => enter(id, live), "aria-current": String(id === kept.chat) }, name || words.fresh));
				if (shownList()) log.append(results.length ? el("ul", { className: "list" }, ...results.map(each)) : el("p", {}, words.none));
			} catch (error) {
				failed(error, list);
			}
		}

		// Files

		/* Questions wait for the files that were chosen before. */
		function attach() {
			const chosen = [...picker.files];
			const before = restored;
			picker.value = "";
			restored = (async () => {
				await before;
				for (const file of chosen) await upload(file);
			})();
			input.focus();
		}

		async function upload(file) {
			const chip = el("span", { className: "file" }, words.uploading(file.name));
			chips.append(chip);
			status.textContent = chip.textContent;
			const body = new FormData();
			body.append("file", file);
			try {
				await beGuest();
				const stored = await call("POST", "files/", body);
				files.push(stored);
				const drop = button("close", words.remove(file.name), () => {
					files = files.filter((each) => each !== stored);
					chip.remove();
					input.focus();
				});
				drop.className = "bare";
				chip.replaceChildren(file.name, drop);
				status.textContent = file.name;
			} catch (error) {
				chip.remove();
				if (error.status === 401) keep({ token: null });
				failed(error, () => upload(file));
			}
		}

		async function submit() {
			const content = input.value.trim();
			if ((!content && !chips.firstChild) || !stopper.hidden) return;
			busy(true);
			if (shownList()) restored = restore();
			await restored;
			if (!content && !files.length) return busy(false); // none of them could be uploaded
			for (const note of log.querySelectorAll(".bad, .asks")) note.remove();
			input.value = "";
			const about = files;
			const question = el("div", {}, ...about.flatMap((file) => shownMessage({ file })), ...shownMessage({ role: "human", content }));
			files = [];
			chips.replaceChildren();
			log.append(question);
			toEnd();
			start(() => ask(content, about), () => {
				question.remove();
				input.value = content;
				files = about;
				submit();
			});
		}

		/* `post` starts a turn; `again` is offered if that fails. */
		async function start(post, again) {
			busy(true);
			try {
				const { message, turn: started } = await post();
				watch(started.id, message.id);
			} catch (error) {
				busy(false);
				if (error.code === "turn_in_progress") watch(error.turn_id); // asked in another window
				else failed(error, again);
			}
		}

		async function watch(id, questionId) {
			const ours = (turn = { id, state: { messages: [], text: {}, reasoning: {}, tool: "" }, unfolded: new Set(), place: el("div"), isDrawn: true });
			keep({ turn: id });
			busy(true);
			log.append(ours.place);
			draw(ours);
			status.textContent = words.answering;
			const onEvent = (event) => {
				ours.isLost = false;
				fold(ours.state, event);
				if (turn !== ours || !ours.isDrawn) return;
				ours.isDrawn = false;
				requestAnimationFrame(() => draw(ours));
			};
			const onLost = () => {
				ours.isLost = true;
				draw(ours);
			};
			const last = await follow((path, options) => send("GET", path, options), id, onEvent, onLost).catch((error) => ({ ...error, event: "turn.failed" }));
			if (turn === ours) ended(ours, last, questionId);
		}

		function ended(over, last, questionId) {
			turn = null;
			keep({ turn: null });
			over.isOver = true;
			over.state.reasoning = {}; // what led to no answer
			draw(over);
			busy(false);
			status.textContent = over.place.textContent;
			if (last.event === "turn.cancelled") log.append(el("p", { className: "note" }, words.stopped));
			if (last.event === "turn.failed" || last.event === "turn.incomplete") {
				const again = () => start(() => call("POST", `messages/${questionId}/regenerate/`), again);
				failed(last, questionId && (() => {
					over.place.remove();
					again();
				}));
			}
			toEnd();
		}

		function stop() {
			if (turn) call("POST", `turns/${turn.id}/cancel/`).catch(failed);
			input.focus();
		}

		function busy(isBusy) {
			log.setAttribute("aria-busy", isBusy);
			const had = root.getRootNode().activeElement;
			[sender.hidden, stopper.hidden] = [isBusy, !isBusy];
			if (had === sender || had === stopper) input.focus();
		}

		// Drawing

		function draw(drawn) {
			const { state: { messages, text, reasoning, tool }, unfolded, place, isLost, isOver } = drawn;
			if (!isOver && log.matches(":active")) return requestAnimationFrame(() => draw(drawn)); // what is pressed stays until it is let go
			if (turn) turn.isDrawn = true;
			const under = Object.keys({ ...text, ...reasoning }).sort((a, b) => a - b);
			const steps = under.map((step) => said("", thoughts(reasoning[step], step, unfolded), text[step] ? markdown(text[step]) : null));
			const isThinking = under.some((step) => !text[step]);
			const waiting = isLost ? words.lost : tool ? words.tool(tool) : isThinking ? words.thinking : steps.length ? "" : words.answering;
			const note = waiting && !isOver ? [el("p", { className: "note dots" }, waiting)] : [];
			place.replaceChildren(...messages.flatMap((message) => shownMessage(message, unfolded)), ...steps, ...note);
			if (wasAtEnd) toEnd();
		}

		function shownMessage({ id, role, content, reasoning, citations, file, feedback }, unfolded = new Set()) {
			if (role === "human") return content.trim() ? [said("you", content)] : [];
			if (role === "assistant" || (role === "tool_call" && (content || reasoning)))
				return [said("", thoughts(reasoning, id, unfolded), markdown(content), sources(citations), role === "assistant" ? acts(id, content, feedback) : null)];
			if (!file) return [];
			return [el("p", { className: "note" }, el("button", { type: "button", className: "again", onclick: () => download(file) }, file.name))];
		}

		function said(who, ...children) {
			const by = el("span", { className: "unseen" }, `${who ? words.you : card.name}: `);
			return el("div", { className: `said ${who}` }, by, ...children);
		}

		/* What can be done with an answer. */
		function acts(id, content, feedback) {
			const judge = (value) =>
				button(value, words[value], async () => {
					const isTaken = thumbs.every((thumb) => thumb.className !== value || thumb.ariaPressed !== "true");
					try {
						await call(isTaken ? "PUT" : "DELETE", `messages/${id}/feedback/`, isTaken ? { value } : undefined);
						for (const thumb of thumbs) thumb.ariaPressed = String(isTaken && thumb.className === value);
						if (isTaken) status.textContent = words.thanks;
					} catch (error) {
						failed(error);
					}
				}, { "aria-pressed": String(feedback?.value === value) });
			const thumbs = [judge("up"), judge("down")];
			const copy = () => navigator.clipboard.writeText(content).then(() => (status.textContent = words.copied), failed);
			return el("div", { className: "acts" }, navigator.clipboard ? button("copy", words.copy, copy) : null, ...thumbs);
		}

		/* What the model thought, folded until somebody wants to read it, and then over all redraws. */
		function thoughts(text, key, unfolded) {
			if (!text) return null;
			/* At the click, which comes before the next redraw; `toggle` may come after it. */
			const onclick = () => (unfolded.has(key) ? unfolded.delete(key) : unfolded.add(key));
			return el("details", { className: "thoughts", open: unfolded.has(key) }, el("summary", { onclick }, words.thoughts), markdown(text));
		}

		function sources(citations) {
			if (!citations?.length) return null;
			const items = citations.map(({ number, document: { name, path }, page }) => {
				const named = /^https?:/.test(path) ? link(name, path) : name;
				return el("li", {}, `[${number}] `, named, page ? `, ${words.page(page)}` : null);
			});
			return el("div", { className: "sources" }, words.sources, el("ul", {}, ...items));
		}

		async function download({ id, name }) {
			try {
				const href = URL.createObjectURL(await (await send("GET", `files/${id}/content/`)).blob());
				el("a", { href, download: name }).click();
				setTimeout(() => URL.revokeObjectURL(href), 60_000);
			} catch (error) {
				failed(error);
			}
		}

		function failed({ code, message }, again) {
			const text = words.errors[code] ?? ((lang === "en" && message) || words.other); // Amber speaks English
			const note = el("p", { className: "note bad", role: "alert" }, text);
			const onclick = () => {
				note.remove();
				input.focus();
				again();
			};
			if (again) note.append(el("button", { type: "button", className: "again", onclick }, words.again));
			log.append(note);
			toEnd();
		}

		function toEnd() {
			log.scrollTop = log.scrollHeight;
		}

		let height = 0; // of the log: until it is known again, nobody has scrolled
		log.onscroll = () => {
			if (log.clientHeight === height) wasAtEnd = log.scrollHeight - log.scrollTop - height < 60;
		};
		new ResizeObserver(() => {
			height = log.clientHeight;
			if (wasAtEnd) toEnd();
		}).observe(log);

		const host = el("div", { id: "amber-widget" });
		const shadow = host.attachShadow({ mode: "open" });
		const sheet = new CSSStyleSheet();
		sheet.replaceSync(STYLE);
		shadow.adoptedStyleSheets = [sheet];
		shadow.append(root);
		document.body.append(host);
		if (kept.open) open(false);
	}

	async function begin() {
		try {
			embed(await call("GET", ""));
		} catch (error) {
			console.warn(`Amber: no assistant ${assistantId} for this page: ${error.message}`);
		}
	}
	if (document.body) begin();
	else addEventListener("DOMContentLoaded", begin);
})();
