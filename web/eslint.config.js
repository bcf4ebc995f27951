import globals from "globals";

export default [
	{ ignores: ["vendor/", "node_modules/", "types/", "widget/"] },
	{
		languageOptions: { ecmaVersion: 2025, sourceType: "module", globals: globals.browser },
		linterOptions: { reportUnusedDisableDirectives: "error" },
		rules: {
			"no-undef": "error", "no-unused-vars": ["error", { argsIgnorePattern: "^_" }], "prefer-const": ["error", { destructuring: "all" }], "no-var": "error", "eqeqeq": ["error", "always", { null: "ignore" }],
			"no-eval": "error", "no-implied-eval": "error", "no-new-func": "error", "no-script-url": "error", "no-shadow": "off", "no-fallthrough": "error",
			"no-empty": "error", "no-self-compare": "error", "no-unreachable": "error", "no-dupe-keys": "error", "no-async-promise-executor": "error",
			"no-constant-condition": ["error", { checkLoops: false }], "require-atomic-updates": "off", "no-duplicate-imports": "error", "no-alert": "error",
			"no-restricted-properties": ["error", { property: "innerHTML", message: "Use app/markdown.js: text is never HTML." }, { property: "outerHTML", message: "As innerHTML." }, { property: "insertAdjacentHTML", message: "As innerHTML." }],
			"no-restricted-syntax": ["error", { selector: "Property[key.name='dangerouslySetInnerHTML']", message: "Text is never HTML." }],
		},
	},
	{ files: ["scripts/**", "eslint.config.js"], languageOptions: { globals: globals.node } },
];
