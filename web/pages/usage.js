/* What was used, day by day: tokens, calls and cost, by model, assistant, key or person. */
import { useEffect, useState } from "preact/hooks";
import { areLoaded, assistants, loadAssistants } from "../app/assistants.js";
import { config } from "../app/config.js";
import { html } from "../app/html.js";
import { date, money, number, t } from "../app/i18n.js";
import { isAdmin, me } from "../app/session.js";
import { BarChart, COLOURS } from "../components/chart.js";
import { Choice } from "../components/forms.js";
import { useList, useRow } from "../components/lists.js";
import { attempt, Failure, Field, useTitle, Waiting } from "../components/ui.js";

const DAY_MS = 86_400_000;
/** @param {number} before days */
const dayBefore = (before) => new Date(Date.now() - before * DAY_MS).toISOString().slice(0, 10);
const FIELDS = { model: "model", assistant: "assistant_id", key: "api_key_id", user: "user_id", kind: "kind" };
/** @type {Record<string, (row: any) => number>} */
const MEASURES = { tokens: (row) => row.prompt_tokens + row.completion_tokens, cost: (row) => Number(row.cost), calls: (row) => row.calls };

export function Page() {
	useTitle(t("usage.title"));
	const [from, setFrom] = useState(dayBefore(29));
	const [to, setTo] = useState(dayBefore(0));
	const [by, setBy] = useState(/** @type {keyof typeof FIELDS} */ ("model"));
	const [measure, setMeasure] = useState("tokens");
	const { row: answer, error, refresh } = useRow(`usage/?group_by=day,${by}&from=${from}&to=${to}`);
	// All of them: whoever is in none of these lists is deleted.
	const keys = useList(by === "key" ? "api-keys/?limit=200" : null, Infinity);
	const members = useList(by === "user" && isAdmin() ? `organizations/${me.value?.organization.id}/members/?limit=200` : null, Infinity);
	useEffect(() => {
		if (by === "assistant" && !areLoaded.value) attempt(loadAssistants);
	}, [by]);
	/** @param {any} row */
	const nameOf = (row) => {
		const id = row[FIELDS[by]];
		if (by === "model") return id || t("usage.none");
		if (by === "kind") return id;
		if (!id) return t("usage.none");
		const all = by === "assistant" ? (areLoaded.value ? assistants.value : null) : by === "key" ? keys.rows : members.rows;
		if (!all) return "…";
		const found = all.find((/** @type {any} */ each) => (by === "user" ? each.user_id : each.id) === id);
		return found ? found.name || found.email : t("usage.gone", { id: id.slice(0, 8) });
	};
	/** @type {any[]} */
	const rows = answer?.results ?? [];
	const amount = MEASURES[measure];
	/** @param {number} value */
	const unit = (value) => (measure === "cost" ? number(value, { maximumFractionDigits: 4 }) : number(value, { notation: value >= 10_000 ? "compact" : "standard", maximumFractionDigits: 1 }));
	/** @type {Map<string, number>} */
	const sums = new Map();
	/** @type {Map<string, Map<string, number>>} */
	const byDay = new Map();
	for (const row of rows) {
		const name = nameOf(row);
		sums.set(name, (sums.get(name) ?? 0) + amount(row));
		const day = byDay.get(row.day) ?? new Map();
		byDay.set(row.day, day.set(name, (day.get(name) ?? 0) + amount(row)));
	}
	const ranked = [...sums].sort(([, a], [, b]) => b - a).map(([name]) => name);
	const named = ranked.length > COLOURS ? ranked.slice(0, COLOURS - 1) : ranked;
	const rest = new Set(ranked.slice(named.length));
	const groups = rest.size ? [...named, t("usage.others")] : named;
	/** @param {string} day @param {string} group */
	const value = (day, group) => {
		const found = byDay.get(day);
		if (!found) return 0;
		return group === t("usage.others") && rest.size ? [...found].reduce((sum, [name, each]) => (rest.has(name) ? sum + each : sum), 0) : (found.get(group) ?? 0);
	};
	/** @type {string[]} */
	const days = [];
	for (let at = Date.parse(from); at <= Date.parse(to) && days.length < 366; at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10));
	/** @param {(row: any) => number} of */
	const total = (of) => rows.reduce((sum, row) => sum + of(row), 0);
	return html`<main class="page" id="content" tabindex="-1">
		<h1>${t("usage.title")}</h1>
		<p class="dim">${t(isAdmin() ? "usage.about.admin" : "usage.about")}</p>
		<div class="pair">
			<${Field} label=${t("usage.from")} type="date" value=${from} max=${to} onValue=${(/** @type {string} */ day) => day && setFrom(day)} />
			<${Field} label=${t("usage.to")} type="date" value=${to} min=${from} onValue=${(/** @type {string} */ day) => day && setTo(day)} />
			<${Choice} label=${t("usage.by")} value=${by} onValue=${setBy} options=${["model", "assistant", "key", "kind", ...(isAdmin() ? ["user"] : [])].map((name) => [name, t(/** @type {any} */ (`usage.by.${name}`))])} />
			<${Choice} label=${t("usage.measure")} value=${measure} onValue=${setMeasure} options=${Object.keys(MEASURES).map((name) => [name, t(/** @type {any} */ (`usage.${name}`))])} />
		</div>
		${Boolean(error) && html`<${Failure} error=${error} onAgain=${refresh} />`}
		${!answer && !error && html`<${Waiting} />`}
		${
			answer &&
			html`<dl class="totals">
				${[["usage.tokens", number(total(MEASURES.tokens))], ["usage.calls", number(total(MEASURES.calls))], ["usage.cost", money(total(MEASURES.cost))]].map(([name, sum]) => html`<div key=${name}><dt>${t(/** @type {any} */ (name))}</dt><dd>${sum}</dd></div>`)}
			</dl>`
		}
		${answer && !rows.length && html`<p class="dim nothing">${t("usage.nothing")}</p>`}
		${
			rows.length > 0 &&
			html`<ul class="legend-list" aria-label=${t("usage.legend")}>${groups.map((group, i) => html`<li key=${group}><span class=${`swatch chart-${i % COLOURS}`}></span><span dir="auto">${group}</span></li>`)}</ul>
				<${BarChart} days=${days} groups=${groups} value=${value} unit=${unit} label=${t("usage.chart", { measure: t(/** @type {any} */ (`usage.${measure}`)), from: date(from), to: date(to) })} />
				<div class="page-part">
					<h2 id="figures">${t("usage.figures")}</h2>
					<p><a href=${`/api/v1/usage/export/?group_by=day,${by}&from=${from}&to=${to}`} download>${t("usage.export")}</a></p>
					<div class="wide-table" tabindex="0" role="region" aria-labelledby="figures">
						<table class="plain">
							<thead><tr><th scope="col">${t("usage.day")}</th><th scope="col">${t(/** @type {any} */ (`usage.by.${by}`))}</th><th scope="col" class="align-right">${t("usage.calls")}</th><th scope="col" class="align-right">${t("usage.prompt")}</th><th scope="col" class="align-right">${t("usage.completion")}</th><th scope="col" class="align-right">${t("usage.cost")} (${config.currency})</th></tr></thead>
							<tbody>${rows.map((row, i) => html`<tr key=${i}><td>${date(`${row.day}T12:00:00Z`)}</td><td dir="auto">${nameOf(row)}</td><td class="align-right">${number(row.calls)}</td><td class="align-right">${number(row.prompt_tokens)}</td><td class="align-right">${number(row.completion_tokens)}</td><td class="align-right">${number(Number(row.cost), { maximumFractionDigits: 6 })}</td></tr>`)}</tbody>
						</table>
					</div>
				</div>`
		}
	</main>`;
}
