/* Files on their way into a chat: uploaded at once, sent with the next question. */
import { computed, signal } from "@preact/signals";
import { announce } from "./announce.js";
import { ApiError, upload } from "./api.js";
import { config } from "./config.js";
import { size, t } from "./i18n.js";

/** @typedef {{ key: number, file: globalThis.File, share: number, stored: import("./api.js").StoredFile | null, error: unknown, abort: AbortController }} Attached */

let serial = 0;

export class Attachments {
	constructor() {
		this.all = signal(/** @type {Attached[]} */ ([]));
		this.isReady = computed(() => this.all.value.every((each) => each.stored || each.error));
		this.stored = computed(() => this.all.value.flatMap((each) => (each.stored ? [each.stored] : [])));
	}

	/** @param {Iterable<globalThis.File>} files */
	add(files) {
		for (const file of files) {
			const attached = { key: ++serial, file, share: 0, stored: null, error: null, abort: new AbortController() };
			this.all.value = [...this.all.value, attached];
			this.upload(attached.key);
		}
	}

	/** @param {number} key */
	async upload(key) {
		const attached = this.all.value.find((each) => each.key === key);
		if (!attached) return;
		const { file, abort } = attached;
		this.change(key, { error: null, share: 0 });
		try {
			if (file.size > config.maxUploadBytes) throw new ApiError(413, { code: "too_large", message: t("attach.tooLarge", { most: size(config.maxUploadBytes) }) });
			// Pasted pictures are all called image.png.
			const stored = await upload(file, file.name || "file", (share) => this.change(key, { share }), abort.signal);
			this.change(key, { stored, share: 1 });
			announce(t("attach.ready", { name: file.name }));
		} catch (error) {
			this.change(key, { error });
		}
	}

	/** @param {number} key @param {Partial<Attached>} fields */
	change(key, fields) {
		this.all.value = this.all.value.map((each) => (each.key === key ? { ...each, ...fields } : each));
	}

	/** @param {number} key */
	remove(key) {
		this.all.value.find((each) => each.key === key)?.abort.abort();
		this.all.value = this.all.value.filter((each) => each.key !== key);
	}

	/** What went with a question that was not taken comes back. @param {import("./api.js").StoredFile[]} files */
	giveBack(files) {
		const back = files.map((stored) => ({ key: ++serial, file: new File([], stored.name), share: 1, stored, error: null, abort: new AbortController() }));
		this.all.value = [...back, ...this.all.value];
	}

	/** What is attached goes with the question. */
	take() {
		const files = this.stored.value;
		this.all.value = [];
		return files;
	}
}

/** @type {Map<string, Attachments>} */
const open = new Map();

/** What is attached to a question that is not sent yet: there again when its chat is. @param {string} draft its name */
export function attachmentsOf(draft) {
	const found = open.get(draft) ?? new Attachments();
	open.set(draft, found);
	return found;
}
