/* Who is signed in, in which organization; signing in and out by django-allauth's API for browsers. */
import { signal } from "@preact/signals";
import { announceChange } from "./tabs.js";
import { ApiError, csrfToken, get, put, whenSessionEnds } from "./api.js";
import { locale } from "./i18n.js";
import { forgetPerson, keep, recall } from "./storage.js";

/** @type {import("@preact/signals").Signal<import("./api.js").Me | null>} */
export const me = signal(null);
/** Whether they administer the organization that they are in. */
export const isAdmin = () => ["owner", "admin"].includes(me.value?.organization?.role ?? "");
/** @type {import("@preact/signals").Signal<"unknown" | "out" | "in" | "unreachable">} */
export const state = signal("unknown");
/** true: the session ended while the page was used, and a dialog asks to sign in again. */
export const hasEnded = signal(false);
/** @type {import("@preact/signals").Signal<import("./api.js").Organization[]>} */
export const organizations = signal([]);
/** @type {import("@preact/signals").Signal<{ id: string, name: string }[]>} */
export const identityProviders = signal([]);

const AUTH = "/_allauth/browser/v1/";

/** What allauth says against a form: its fields, and what belongs to none ("").  */
export class FormError extends Error {
	/** @param {Record<string, string>} fields */
	constructor(fields) {
		super(Object.values(fields).join(" "));
		this.fields = fields;
	}
}

/**
 * @param {string} method @param {string} path @param {unknown} [body]
 * @returns {Promise<{ status: number, data: any, meta: any }>}
 */
async function authenticate(method, path, body) {
	if (method !== "GET" && !csrfToken()) await fetch(`${AUTH}config`);
	const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken(), "Accept-Language": locale.value };
	let response;
	try {
		response = await fetch(AUTH + path, { method, headers, body: body ? JSON.stringify(body) : undefined, cache: "no-store" });
	} catch {
		throw new ApiError(0, { code: "network" });
	}
	const said = await response.json().catch(() => ({}));
	if (said.errors?.length) {
		/** @type {Record<string, string>} */
		const fields = {};
		for (const { param, message } of said.errors) fields[param ?? ""] = [fields[param ?? ""], message].filter(Boolean).join(" ");
		throw new FormError(fields);
	}
	if (response.status === 429) throw new ApiError(429, { code: "rate_limited", message: "" }, Number(response.headers.get("Retry-After")));
	if (said.error || response.status >= 500) throw new ApiError(response.status, said.error);
	return { status: response.status, data: said.data ?? {}, meta: said.meta ?? {} };
}

/** Find out who is signed in. */
export async function load() {
	// Whoever has signed in here has this cookie; whoever has not need not be refused to know.
	if (!csrfToken()) {
		state.value = "out";
		return;
	}
	try {
		const found = await get("me/", { isQuiet: true });
		// What another person wrote in this browser is not shown to this one.
		if (recall("person", found.id) !== found.id) forgetPerson();
		keep("person", found.id);
		me.value = found;
		state.value = "in";
		loadOrganizations();
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		me.value = null;
		state.value = error.status === 401 || error.status === 403 ? "out" : "unreachable";
	}
}

async function loadOrganizations() {
	organizations.value = (await get("organizations/?limit=200")).results;
}

export async function loadIdentityProviders() {
	const { data } = await authenticate("GET", "config");
	identityProviders.value = data.socialaccount?.providers ?? [];
}

/** @param {string} email @param {string} password */
export async function signIn(email, password) {
	const { status, data } = await authenticate("POST", "auth/login", { email, password });
	if (status === 401 && data.flows?.some((/** @type {any} */ flow) => flow.id === "verify_email" && flow.is_pending)) return "verify";
	await load();
	await enterTeam();
	announceChange("session");
	return "in";
}

/** A session begins in the person's own organization. Whoever belongs to another works there, until they choose. */
async function enterTeam() {
	if (!me.value?.organization.personal) return;
	await loadOrganizations();
	const team = organizations.value.find((each) => !each.personal);
	if (!team) return;
	await put("me/organization/", { organization_id: team.id });
	await load();
}

/** @param {string} email @param {string} password @param {string} invitation its token, or "" */
export async function signUp(email, password, invitation) {
	const body = invitation ? { email, password, invitation } : { email, password };
	const { status } = await authenticate("POST", "auth/signup", body);
	if (status === 403) throw new ApiError(403, { code: "sign_up_closed" });
	if (status === 401) return "verify";
	await load();
	announceChange("session");
	return "in";
}

export async function signOut() {
	await authenticate("DELETE", "auth/session");
	forgetPerson();
	announceChange("session");
	// A fresh page: nothing of this person stays in memory.
	location.assign("/sign-in");
}

/** @param {string} email */
export const askForReset = (email) => authenticate("POST", "auth/password/request", { email });
/** @param {string} key @param {string} password */
export const resetPassword = (key, password) => authenticate("POST", "auth/password/reset", { key, password });
/** @param {string} key */
export const verifyEmail = (key) => authenticate("POST", "auth/email/verify", { key });

/** @param {string} id */
export async function switchOrganization(id) {
	await put("me/organization/", { organization_id: id });
	announceChange("session");
	location.assign("/");
}

/** @type {(() => void)[]} */
let waiting = [];

/** All requests that the ended session refused go on, if the same person signs in again. */
export async function resume() {
	await load();
	hasEnded.value = false;
	for (const wake of waiting) wake();
	waiting = [];
}

whenSessionEnds(async () => {
	if (state.value !== "in") throw new ApiError(401, { code: "not_authenticated" });
	// A request of the old session may be refused after the new one has begun.
	if (!hasEnded.value && (await isStillIn())) return;
	hasEnded.value = true;
	await new Promise((wake) => waiting.push(() => wake(null)));
});

async function isStillIn() {
	try {
		return (await get("me/", { isQuiet: true })).id === me.value?.id;
	} catch (error) {
		if (error instanceof ApiError && error.status === 401) return false;
		throw error;
	}
}
