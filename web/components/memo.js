/* Components that are drawn again only if what they are given has changed. */
import { Component, h } from "preact";

/**
 * @template {(props: any) => any} T
 * @param {T} component
 * @returns {T}
 */
export function memo(component) {
	class Memo extends Component {
		/** @param {Record<string, unknown>} next */
		shouldComponentUpdate(next) {
			const now = /** @type {Record<string, unknown>} */ (this.props);
			return Object.keys({ ...now, ...next }).some((name) => now[name] !== next[name]);
		}
		render() {
			return h(component, this.props);
		}
	}
	return /** @type {any} */ (Memo);
}
