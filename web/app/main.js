/* Starts the page: who is signed in, which words, which page; and what stands around every page. */
import { Component, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Notes, PlainPage, Waiting } from "../components/ui.js";
import { Frame } from "../components/frame.js";
import { SignInAgain } from "../components/sign-in-form.js";
import { isOnline } from "./api.js";
import { html } from "./html.js";
import { t, useLocale } from "./i18n.js";
import { current, navigate, routes, visits } from "./router.js";
import { ROUTES } from "./routes.js";
import * as session from "./session.js";
import { onChange } from "./tabs.js";

/** A page that fails shows so, and takes nothing else with it. */
class Fence extends Component {
	/** @param {any} props */
	constructor(props) {
		super(props);
		this.state = { error: null };
	}
	/** @param {unknown} error */
	static getDerivedStateFromError(error) {
		return { error };
	}
	/** @param {unknown} error */
	componentDidCatch(error) {
		console.error(error);
	}
	render() {
		const { error } = /** @type {any} */ (this.state);
		if (!error) return /** @type {any} */ (this.props).children;
		return html`<${PlainPage} title=${t("broken.title")} text=${t("broken.text")}>
			<button type="button" class="button primary" onClick=${() => this.setState({ error: null })}>${t("broken.again")}</button>
		<//>`;
	}
}

/** Something could not be fetched, for want of a network. @param {{ onAgain: () => unknown }} props */
const Unreachable = ({ onAgain }) => html`<${PlainPage} title=${t("unreachable.title")} text=${t("unreachable.text")}>
	<button type="button" class="button primary" onClick=${onAgain}>${t("again")}</button>
<//>`;

const Unloaded = () => html`<${Unreachable} onAgain=${() => location.reload()} />`;
const Loading = () => html`<main class="plain-page" id="content" tabindex="-1"><${Waiting} /></main>`;
const NotFound = () => html`<${PlainPage} title=${t("notFound.title")} text=${t("notFound.text")}><p><a class="button primary" href="/">${t("notFound.home")}</a></p><//>`;

/** The module of the page that is addressed, once it is there. */
function usePage() {
	const { route } = current.value;
	const [loaded, setLoaded] = useState(/** @type {{ route: any, Page: any } | null} */ (null));
	const found = route?.page();
	useEffect(() => {
		if (!route || !(found instanceof Promise)) return;
		let isWanted = true;
		found.then(
			({ Page }) => isWanted && setLoaded({ route, Page }),
			() => isWanted && setLoaded({ route, Page: Unloaded }),
		);
		return () => {
			isWanted = false;
		};
	}, [route]);
	if (found && !(found instanceof Promise)) return found.Page;
	return loaded?.route.page === route?.page ? loaded?.Page : null;
}

function App() {
	const { route, params, query } = current.value;
	const Page = usePage();
	const state = session.state.value;
	const isOpen = route?.isOpen ?? false;
	const mustSignIn = state === "out" && !isOpen;
	useEffect(() => {
		if (mustSignIn) navigate(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`, { replace: true });
	}, [mustSignIn]);
	useFocusOnVisit(Page);
	if (state === "unreachable") return html`<${Unreachable} onAgain=${session.load} />`;
	if (state === "unknown" || mustSignIn) return html`<${Loading} />`;
	const shown = !route ? html`<${NotFound} />` : Page ? html`<${Page} params=${params} query=${query} />` : html`<${Loading} />`;
	const fenced = html`<${Fence} key=${current.value.path}>${shown}<//>`;
	return html`<a class="skip" href="#content" onClick=${skip}>${t("skip")}</a>
		${!isOnline.value && html`<p class="offline" role="status">${t("offline")}</p>`}
		${isOpen ? fenced : html`<${Frame}>${fenced}<//>`}
		${session.hasEnded.value && html`<${SignInAgain} />`}
		<${Notes} />`;
}

/** @param {Event} event */
function skip(event) {
	event.preventDefault();
	document.getElementById("content")?.focus();
}

/** After a navigation focus goes to the page: to what it marks, or to its beginning. @param {any} Page */
function useFocusOnVisit(Page) {
	const seen = useRef(visits.value);
	useEffect(() => {
		if (seen.current === visits.value || !Page) return;
		seen.current = visits.value;
		const place = document.querySelector("[data-focus]") ?? document.getElementById("content");
		if (place instanceof HTMLElement && !document.querySelector("dialog[open]")) place.focus({ preventScroll: true });
	});
}

routes.value = ROUTES;
onChange((what) => what === "session" && location.reload());
// The browser keeps pages for its way back: what somebody saw is not shown to whoever comes after the sign-out.
addEventListener("pageshow", (event) => event.persisted && location.reload());
await Promise.all([useLocale(), session.load()]);
document.documentElement.classList.remove("booting");
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren(); // the mark that the page is on its way
render(html`<${App} />`, root);
