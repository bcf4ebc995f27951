/* Amber's REST API: JSON in and out, its errors as they are, the session's CSRF token, sign-in on the spot. */
import { signal } from "@preact/signals";

/**
 * @typedef {import("../types/api.d.ts").components["schemas"]} Schemas
 * @typedef {Schemas["Chat"]} Chat
 * @typedef {Schemas["Message"]} Message
 * @typedef {Schemas["Turn"]} Turn
 * @typedef {Schemas["Assistant"]} Assistant
 * @typedef {Schemas["Me"]} Me
 * @typedef {Schemas["Organization"]} Organization
 * @typedef {Schemas["Manifest"]} Manifest
 * @typedef {Schemas["File"]} StoredFile
 */
/**
 * @template T
 * @typedef {{ next: string | null, previous: string | null, results: T[] }} Page
 */

export const BASE = "/api/v1/";

/** false: the last request found no network. Requests that find one set it again. */
export const isOnline = signal(navigator.onLine);
/** How often the network came or went: a request that began before the last time says nothing of now. */
let changes = 0;
/** @param {boolean} isThere */
const networkChanged = (isThere) => {
	changes++;
	isOnline.value = isThere;
};
addEventListener("online", () => networkChanged(true));
addEventListener("offline", () => networkChanged(false));

/** What Amber answered instead of what was asked for; status 0: there was no answer. */
export class ApiError extends Error {
	/** @param {number} status @param {any} error @param {number} retryAfter seconds */
	constructor(status, error, retryAfter = 0) {
		super(error?.message ?? `HTTP ${status}`);
		this.status = status;
		/** @type {string} */
		this.code = error?.code ?? (status ? "other" : "network");
		/** @type {Record<string, string[]>} */
		this.fields = error?.fields ?? {};
		/** What kind of mistake each text of `fields` is. @type {Record<string, string[]>} */
		this.fieldCodes = error?.field_codes ?? {};
		this.retryable = Boolean(error?.retryable) || status === 0;
		/** @type {string | undefined} */
		this.turnId = error?.turn_id;
		this.retryAfter = retryAfter;
	}
}

export const csrfToken = () => /(?:^|; )csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? "";

/** @type {() => Promise<void>} */
let signInAgain = () => Promise.reject(new ApiError(401, { code: "not_authenticated" }));

/** What is done when the session has ended: resolves once the same person is signed in again. @param {() => Promise<void>} ask */
export function whenSessionEnds(ask) {
	signInAgain = ask;
}

/**
 * @typedef {object} Options
 * @property {unknown} [body] sent as JSON; FormData as it is
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {string} [key] of idempotency: the request may be repeated and is done once
 * @property {boolean} [isQuiet] a session that has ended is an error, not a question
 */

/**
 * The response, if it is good. `path` stands below /api/v1/, or is an address of a page of a list.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Response>}
 */
export async function send(method, path, options = {}) {
	for (let attempt = 0; ; attempt++) {
		const { body, signal, key, isQuiet } = options;
		/** @type {Record<string, string>} */
		const headers = { Accept: "application/json", ...options.headers };
		if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
		if (key) headers["Idempotency-Key"] = key;
		const isForm = body instanceof FormData;
		if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
		const sent = body === undefined || isForm ? /** @type {any} */ (body) : JSON.stringify(body);
		const begunAt = changes;
		let response;
		try {
			response = await fetch(address(path), { method, headers, body: sent, signal, cache: "no-store", redirect: "error" });
		} catch (error) {
			if (signal?.aborted) throw error;
			if (begunAt === changes) isOnline.value = false;
			throw new ApiError(0, { code: "network" });
		}
		if (begunAt === changes) isOnline.value = true;
		if (response.ok) return response;
		const error = await errorOf(response);
		if (error.status === 401 && !isQuiet && attempt < 3) await signInAgain();
		else if (error.code === "csrf_failed" && attempt === 0) await fetch("/_allauth/browser/v1/auth/session");
		else throw error;
	}
}

/** Lists name their pages with the host that they were asked at. @param {string} path */
function address(path) {
	if (!path.startsWith("http")) return path.startsWith("/") ? path : BASE + path;
	const { pathname, search } = new URL(path);
	return pathname + search;
}

/** @param {Response} response */
async function errorOf(response) {
	return new ApiError(response.status, read(await response.text()).error, Number(response.headers.get("Retry-After")));
}

/** What an answer says; nothing where a proxy answered in its own words. @param {string} text @returns {any} */
function read(text) {
	try {
		return JSON.parse(text);
	} catch {
		return {};
	}
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
async function call(method, path, options) {
	const response = await send(method, path, options);
	return response.status === 204 ? null : response.json();
}

/** @param {string} path @param {Options} [options] */
export const get = (path, options) => call("GET", path, options);
/** @param {string} path @param {unknown} [body] @param {Options} [options] */
export const post = (path, body = {}, options) => call("POST", path, { ...options, body });
/** @param {string} path @param {unknown} body @param {Options} [options] */
export const patch = (path, body, options) => call("PATCH", path, { ...options, body });
/** @param {string} path @param {unknown} body @param {Options} [options] */
export const put = (path, body, options) => call("PUT", path, { ...options, body });
/** @param {string} path @param {Options} [options] */
export const remove = (path, options) => call("DELETE", path, options);

/** An open event stream. @param {string} path @param {{ headers: Record<string, string>, signal: AbortSignal }} options */
export const stream = (path, options) =>
	send("GET", path, { ...options, headers: { ...options.headers, Accept: "text/event-stream" } });

/** Opens streams until told to stop: then those that are open end, and the next is refused. @param {AbortSignal} stop */
export const streamUntil = (stop) => async (/** @type {string} */ path, /** @type {{ headers: Record<string, string>, signal: AbortSignal }} */ options) => {
	if (stop.aborted) throw new ApiError(410, { code: "stopped" });
	const connection = new AbortController();
	for (const signal of [stop, options.signal]) signal.addEventListener("abort", () => connection.abort());
	return stream(path, { ...options, signal: connection.signal });
};

export const newKey = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16)).join("");

/**
 * Upload a file, telling how far it is, between 0 and 1.
 * @param {Blob} file
 * @param {string} name
 * @param {(share: number) => void} onProgress
 * @param {AbortSignal} [signal]
 * @param {string} [path] below /api/v1/
 * @param {Record<string, string>} [fields]
 * @returns {Promise<any>}
 */
export function upload(file, name, onProgress, signal, path = "files/", fields = {}) {
	return new Promise((done, fail) => {
		// Only this older interface tells how much was sent.
		const request = new XMLHttpRequest();
		request.open("POST", BASE + path);
		request.setRequestHeader("X-CSRFToken", csrfToken());
		request.setRequestHeader("Idempotency-Key", newKey());
		request.responseType = "text";
		request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
		request.onerror = () => fail(new ApiError(0, { code: "network" }));
		request.onabort = () => fail(new ApiError(0, { code: "aborted" }));
		request.onload = () => {
			const said = read(request.responseText);
			if (request.status >= 200 && request.status < 300) done(said);
			else fail(new ApiError(request.status, said.error, Number(request.getResponseHeader("Retry-After"))));
		};
		signal?.addEventListener("abort", () => request.abort());
		const form = new FormData();
		for (const [field, value] of Object.entries(fields)) form.append(field, value);
		form.append("file", file, name);
		request.send(form);
	});
}
