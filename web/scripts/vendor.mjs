/*
 * Copies what the page uses of npm's packages into vendor/, as published, with licences and a list of
 * hashes. Run by `make web-vendor` after `npm ci`; tests/house/test_web_files.py holds the folder to the list.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = join(dirname(fileURLToPath(import.meta.url)), "..");
const VENDOR = join(HERE, "vendor");

const LANGUAGES = [
	"bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "graphql", "ini", "java", "javascript", "json",
	"kotlin", "lua", "makefile", "markdown", "nginx", "perl", "php", "plaintext", "powershell", "python", "r", "ruby",
	"rust", "scala", "shell", "sql", "swift", "typescript", "xml", "yaml",
];

/** What is taken of each package: its file, and its name in vendor/. */
const TAKEN = {
	"preact": { "dist/preact.module.js": "preact.js", "hooks/dist/hooks.module.js": "preact-hooks.js" },
	"@preact/signals-core": { "dist/signals-core.module.js": "signals-core.js" },
	"@preact/signals": { "dist/signals.module.js": "signals.js" },
	"htm": { "dist/htm.module.js": "htm.js" },
	"markdown-it": { "dist/markdown-it.min.js": "markdown-it.js" },
	"dompurify": { "dist/purify.min.js": "dompurify.js" },
	"@highlightjs/cdn-assets": {
		"es/core.min.js": "highlight/core.js",
		...Object.fromEntries(LANGUAGES.map((name) => [`es/languages/${name}.min.js`, `highlight/${name}.js`])),
	},
	"katex": {
		"dist/katex.min.js": "katex/katex.js",
		"dist/katex.min.css": "katex/katex.css",
		...Object.fromEntries(
			readdirSync(join(HERE, "node_modules/katex/dist/fonts"))
				.filter((name) => name.endsWith(".woff2"))
				.map((name) => [`dist/fonts/${name}`, `katex/fonts/${name}`]),
		),
	},
};

/** @param {string} path */
function put(path, bytes) {
	mkdirSync(dirname(path), { recursive: true });
	writeFileSync(path, bytes);
}

rmSync(VENDOR, { recursive: true, force: true });
const lock = JSON.parse(readFileSync(join(HERE, "package-lock.json"), "utf8"));
const files = {};
const packages = {};
for (const [name, taken] of Object.entries(TAKEN)) {
	const folder = join(HERE, "node_modules", name);
	const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
	packages[name] = { version, license, integrity: lock.packages[`node_modules/${name}`].integrity };
	const licence = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
	if (!licence) throw new Error(`${name} has no licence file`);
	cpSync(join(folder, licence), join(VENDOR, "licences", `${name.replace("/", "-").replace("@", "")}.txt`));
	for (const [from, to] of Object.entries(taken)) {
		// Their source maps are not here; a browser's developer tools would ask for them.
		const raw = readFileSync(join(folder, from));
		const bytes = /\.(js|css)$/.test(to) ? raw.toString().replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, "\n") : raw;
		put(join(VENDOR, to), bytes);
		files[to] = `sha384-${createHash("sha384").update(bytes).digest("base64")}`;
	}
}
// Inside of markdown-it and KaTeX are others' works, under licences of their own.
for (const inner of ["entities", "linkify-it", "mdurl", "punycode.js", "uc.micro"]) {
	const folder = join(HERE, "node_modules", inner);
	if (!existsSync(folder)) continue;
	const licence = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
	if (licence) cpSync(join(folder, licence), join(VENDOR, "licences", `markdown-it-${inner}.txt`));
}
// The type checker reads these instead of minified scripts.
for (const name of ["markdown-it", "dompurify", "katex/katex", "highlight/core"])
	put(join(VENDOR, `${name}.d.ts`), "declare const made: any;\nexport default made;\n");
put(join(VENDOR, "integrity.json"), `${JSON.stringify({ packages, files }, null, "\t")}\n`);
console.log(`${Object.keys(files).length} files of ${Object.keys(packages).length} packages`);
