/*
 * Every address of the page, and the module that shows it. A page that is not part of the first view is
 * loaded on use. `nav` puts it into the side bar. How an address begins must stand in PLACES of
 * amber/web/page.py too (tested).
 */
import * as chat from "../pages/chat.js";

/**
 * @typedef {object} Route
 * @property {string} path with `:name` for a part
 * @property {() => Promise<{ Page: any }> | { Page: any }} page
 * @property {import("./i18n.js").Key} title
 * @property {string} [nav] the name of its icon
 * @property {boolean} [isOpen] for people who are not signed in, too
 */

/** @type {Route[]} */
export const ROUTES = [
	{ path: "/", page: () => chat, title: "chat.new" },
	{ path: "/chats/:id", page: () => chat, title: "chat.title" },
	{ path: "/assistants", page: () => import("../pages/assistants.js"), title: "assistants.title", nav: "assistants" },
	{ path: "/assistants/:id", page: () => import("../pages/assistant.js"), title: "assistants.title" },
	{ path: "/libraries", page: () => import("../pages/libraries.js"), title: "libraries.title", nav: "libraries" },
	{ path: "/libraries/:id", page: () => import("../pages/library.js"), title: "libraries.title" },
	{ path: "/libraries/:id/documents/:document", page: () => import("../pages/document.js"), title: "document.title" },
	{ path: "/tools", page: () => import("../pages/tools.js"), title: "tools.title", nav: "tools" },
	{ path: "/tools/:id", page: () => import("../pages/tool.js"), title: "tools.title" },
	{ path: "/memories", page: () => import("../pages/memories.js"), title: "memories.title", nav: "memories" },
	{ path: "/usage", page: () => import("../pages/usage.js"), title: "usage.title", nav: "usage" },
	{ path: "/settings", page: () => import("../pages/settings.js"), title: "settings.title", nav: "settings" },
	{ path: "/settings/:part", page: () => import("../pages/settings.js"), title: "settings.title" },
	{ path: "/sign-in", page: () => import("../pages/sign-in.js"), title: "signIn.title", isOpen: true },
	{ path: "/sign-up", page: () => import("../pages/sign-up.js"), title: "signUp.title", isOpen: true },
	{ path: "/verify-email/:key", page: () => import("../pages/verify-email.js"), title: "verify.title", isOpen: true },
	{ path: "/reset-password", page: () => import("../pages/reset-password.js"), title: "reset.title", isOpen: true },
	{ path: "/reset-password/:key", page: () => import("../pages/reset-password.js"), title: "reset.title", isOpen: true },
	{ path: "/login-error", page: () => import("../pages/login-error.js"), title: "loginError.title", isOpen: true },
	{ path: "/invitation/:token", page: () => import("../pages/invitation.js"), title: "invitation.title", isOpen: true },
	{ path: "/claim", page: () => import("../pages/claim.js"), title: "claim.title" },
];
