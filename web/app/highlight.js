/* Colours for code; the highlighter and each language are loaded when a first piece of code wants them. */

const NAMES = {
	bash: "bash", sh: "bash", shell: "shell", console: "shell", zsh: "bash", c: "c", h: "c", cpp: "cpp", "c++": "cpp", cc: "cpp", cs: "csharp", csharp: "csharp", css: "css", diff: "diff", patch: "diff",
	dockerfile: "dockerfile", docker: "dockerfile", go: "go", golang: "go", graphql: "graphql", ini: "ini", toml: "ini", java: "java", js: "javascript", javascript: "javascript", jsx: "javascript", mjs: "javascript", json: "json",
	kt: "kotlin", kotlin: "kotlin", lua: "lua", make: "makefile", makefile: "makefile", md: "markdown", markdown: "markdown", nginx: "nginx", perl: "perl", pl: "perl", php: "php", powershell: "powershell", ps1: "powershell",
	py: "python", python: "python", python3: "python", r: "r", rb: "ruby", ruby: "ruby", rs: "rust", rust: "rust", scala: "scala", sql: "sql", postgresql: "sql", swift: "swift", ts: "typescript", typescript: "typescript", tsx: "typescript",
	html: "xml", xml: "xml", svg: "xml", yaml: "yaml", yml: "yaml",
};
/** More than this takes longer than a frame. */
const MOST_CHARS = 20_000;

/** @type {Promise<any> | null} */
let core = null;
/** @type {Map<string, Promise<void>>} */
const loaded = new Map();

/**
 * The code as safe HTML, or null: the language is not known, or there is too much of it.
 * @param {string} code @param {string} language as the answer calls it
 * @returns {Promise<string | null>}
 */
export async function highlight(code, language) {
	const name = NAMES[/** @type {keyof typeof NAMES} */ (language.toLowerCase())];
	if (!name || code.length > MOST_CHARS) return null;
	core ??= import("../vendor/highlight/core.js").then((module) => module.default);
	const highlighter = await core;
	let language_ = loaded.get(name);
	if (!language_) {
		language_ = import(`../vendor/highlight/${name}.js`).then((module) => highlighter.registerLanguage(name, module.default));
		loaded.set(name, language_);
	}
	await language_;
	return highlighter.highlight(code, { language: name, ignoreIllegals: true }).value;
}
