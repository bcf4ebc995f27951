/* Bars for each day, stacked by group, with axes; the figures stand in a table for everybody who wants them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../app/html.js";
import { date } from "../app/i18n.js";

const LEAST_WIDTH = 280;
const HEIGHT = 280;
const LEFT = 64;
const BOTTOM = 28;
const LABEL_WIDTH = 80;
export const COLOURS = 6;

/** Round steps for an axis up to this value. @param {number} most */
function steps(most) {
	const rough = (most || 1) / 4;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = /** @type {number} */ ([1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough));
	return Array.from({ length: Math.ceil((most || 1) / step) + 1 }, (_, i) => i * step);
}

/** The width of what is drawn, in CSS pixels, so that its words are as large on a phone. @returns {[import("preact").RefObject<SVGSVGElement>, number]} */
function useWidth() {
	const drawn = useRef(/** @type {SVGSVGElement | null} */ (null));
	const [width, setWidth] = useState(LEAST_WIDTH);
	useEffect(() => {
		const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(LEAST_WIDTH, entry.contentRect.width)));
		if (drawn.current) watcher.observe(drawn.current);
		return () => watcher.disconnect();
	}, []);
	return [drawn, width];
}

/**
 * @param {{ days: string[], groups: string[], value: (day: string, group: string) => number, label: string, unit: (value: number) => string }} props
 */
export function BarChart({ days, groups, value, label, unit }) {
	const [drawn, across] = useWidth();
	const totals = days.map((day) => groups.reduce((sum, group) => sum + value(day, group), 0));
	const marks = steps(Math.max(...totals, 0));
	const most = marks[marks.length - 1];
	/** @param {number} amount */
	const y = (amount) => HEIGHT - BOTTOM - (amount / most) * (HEIGHT - BOTTOM - 12);
	const slot = (across - LEFT) / Math.max(1, days.length);
	const width = Math.max(1, Math.min(36, slot * 0.72));
	const every = Math.ceil((days.length * LABEL_WIDTH) / (across - LEFT));
	return html`<svg ref=${drawn} class="chart" viewBox=${`0 0 ${across} ${HEIGHT}`} role="img" aria-label=${label}>
		${marks.map((mark) => html`<g key=${mark}><line class="grid" x1=${LEFT} x2=${across} y1=${y(mark)} y2=${y(mark)} /><text x=${LEFT - 8} y=${y(mark) + 4} text-anchor="end">${unit(mark)}</text></g>`)}
		<line class="axis" x1=${LEFT} x2=${across} y1=${y(0)} y2=${y(0)} />
		${days.map((day, i) => {
			let sum = 0;
			const x = LEFT + i * slot + (slot - width) / 2;
			return html`<g key=${day}>
				${groups.map((group, place) => {
					const amount = value(day, group);
					const from = y(sum);
					sum += amount;
					return amount > 0 && html`<rect class=${`chart-${place % COLOURS}`} x=${x} y=${y(sum)} width=${width} height=${Math.max(0.5, from - y(sum))}><title>${`${day} · ${group}: ${unit(amount)}`}</title></rect>`;
				})}
				${i % every === 0 && html`<text x=${x + width / 2} y=${HEIGHT - 8} text-anchor="middle">${date(`${day}T12:00:00Z`, { month: "short", day: "numeric" })}</text>`}
			</g>`;
		})}
	</svg>`;
}
