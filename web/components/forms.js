/* Forms: their fields, what a refusal says of each, and the act that saves their values. */
import { useId, useLayoutEffect, useState } from "preact/hooks";
import { ApiError } from "../app/api.js";
import { html } from "../app/html.js";
import { t } from "../app/i18n.js";
import { FormError } from "../app/session.js";
import { Button, Dialog, Failure, fieldWords } from "./ui.js";

/** A labelled choice among few. @param {{ label: string, value: string, onValue: (value: any) => void, options: any[][], [name: string]: any }} props */
export function Choice({ label, value, onValue, options, ...rest }) {
	const id = useId();
	return html`<div class="field">
		<label for=${id}>${label}</label>
		<select id=${id} value=${value} onChange=${(/** @type {any} */ event) => onValue(event.currentTarget.value)} ...${rest}>
			${options.map(([name, words]) => html`<option key=${name} value=${name} selected=${name === value}>${words}</option>`)}
		</select>
	</div>`;
}

/** A box to tick. @param {{ label: string, checked: boolean, onChecked: (checked: boolean) => void, hint?: string, [name: string]: any }} props */
export function Tick({ label, checked, onChecked, hint, ...rest }) {
	return html`<label class="choice tick">
		<input type="checkbox" checked=${checked} onChange=${(/** @type {any} */ event) => onChecked(event.currentTarget.checked)} ...${rest} />
		<span>${label}${hint && html`<span class="hint">${hint}</span>`}</span>
	</label>`;
}

/**
 * The words of the fields that a refusal complains about; the first of them gets focus, wherever in the form it is.
 * `rest` is the error, unless the fields that were asked for say all of it.
 * @param {unknown} error
 */
export function useComplaints(error) {
	useLayoutEffect(() => {
		if (error) /** @type {HTMLElement | null} */ ((document.querySelector("dialog[open]") ?? document).querySelector("[aria-invalid=true]"))?.focus();
	}, [error]);
	const fields = error instanceof FormError || (error instanceof ApiError && error.code === "invalid") ? error.fields : {};
	const told = new Set();
	/** @param {string} name */
	const said = (name) => {
		told.add(name);
		if (error instanceof FormError) return error.fields[name];
		return fields[name] ? fieldWords(/** @type {ApiError} */ (error), name) : undefined;
	};
	const rest = () => (error instanceof FormError || (Object.keys(fields).length && Object.keys(fields).every((name) => told.has(name))) ? null : error);
	return Object.assign(said, { rest });
}

/** A form whose values are kept together, saved by one act. `failure` shows what no field says. @param {Record<string, any>} first @param {(given: any) => Promise<unknown>} act */
export function useForm(first, act) {
	const [given, setGiven] = useState(first);
	const [error, setError] = useState(/** @type {unknown} */ (null));
	const [isBusy, setBusy] = useState(false);
	/** @param {string} name */
	const set = (name) => (/** @type {any} */ value) => setGiven({ ...given, [name]: value });
	/** @param {Event} event */
	const onSubmit = async (event) => {
		event.preventDefault();
		if (isBusy) return;
		setBusy(true);
		try {
			setError(null);
			await act(given);
		} catch (why) {
			setError(why);
		} finally {
			setBusy(false);
		}
	};
	const said = useComplaints(error);
	/** @param {string} name */
	const field = (name) => ({ value: given[name] ?? "", onValue: set(name), error: said(name) });
	return {
		...{ given, setGiven, set, field, said, onSubmit, isBusy },
		/** To be read after the fields, which it does not repeat. */
		get failure() {
			return html`<${Failure} error=${said.rest()} />`;
		},
	};
}

/**
 * A dialog that is a form.
 * @param {{ title: string, form: ReturnType<typeof useForm>, yes: string, onClose: () => void, kind?: string, class?: string, children?: any }} props `yes`: what its button says
 */
export const FormDialog = ({ title, form, yes, onClose, kind = "primary", class: name = "small", children }) => html`<${Dialog} title=${title} onClose=${onClose} class=${name}>
	<form class="form" onSubmit=${form.onSubmit}>
		${children}
		${form.failure}
		<div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button} kind=${kind} type="submit" isBusy=${form.isBusy}>${yes}<//></div>
	</form>
<//>`;
