"use strict";

/**
 * What Amber adds to Swagger UI: the filter looks at operations, not at groups alone; and all operations stand in
 * the page, each path as one piece of text, so that the browser's search finds them.
 */
const AmberPlugin = () => {
	const textOf = (operation, tag) =>
		[tag, operation.get("method"), operation.get("path"), operation.getIn(["operation", "summary"])]
			.join(" ")
			.toLowerCase();

	return {
		fn: {
			opsFilter(groups, phrase) {
				const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
				const isWanted = (operation, tag) => words.every((word) => textOf(operation, tag).includes(word));
				return groups
					.map((group, tag) =>
						group.update("operations", (operations) => operations.filter((each) => isWanted(each, tag))),
					)
					.filter((group) => group.get("operations").size);
			},
		},
		wrapComponents: {
			// The original draws only what is in view as soon as there are 150 of them.
			operations: (_original, { React }) => (props) => {
				const { specSelectors, getComponent } = props;
				const Group = getComponent("OperationTag");
				const Operation = getComponent("OperationContainer", true);
				const draw = (each, tag) => {
					const [path, method] = [each.get("path"), each.get("method")];
					const own = { key: `${path} ${method}`, op: each, path, method, tag, specPath: each.get("specPath") };
					return React.createElement(Operation, own);
				};
				const groups = specSelectors.taggedOperations().map((group, tag) =>
					React.createElement(
						Group,
						{ ...props, key: tag, tag, tagObj: group, specUrl: specSelectors.url() },
						React.createElement("div", { className: "operation-tag-content" },
							group.get("operations").map((each) => draw(each, tag)).toArray()),
					),
				);
				if (!groups.size) return React.createElement("p", null, "No operation has all of these words.");
				return React.createElement("div", null, groups.valueSeq().toArray());
			},
			// The original puts a space without width before every slash.
			OperationSummaryPath: (_original, { React }) => ({ operationProps, getComponent }) => {
				const of = (name) => operationProps.get(name);
				const DeepLink = getComponent("DeepLink");
				const className = `opblock-summary-path${of("deprecated") ? "__deprecated" : ""}`;
				const place = encodeURIComponent(`${of("tag")}/${of("operationId")}`.replaceAll(" ", "_")).replaceAll("%2F", "/");
				const link = { enabled: of("isDeepLinkingEnabled"), isShown: of("isShown"), path: place, text: of("path") };
				return React.createElement("span", { className, "data-path": of("path") }, React.createElement(DeepLink, link));
			},
		},
	};
};

const isDark = matchMedia("(prefers-color-scheme: dark)");
const showScheme = () => document.documentElement.classList.toggle("dark-mode", isDark.matches);
isDark.addEventListener("change", showScheme);
showScheme();

// Swagger UI gives its filter no name.
new MutationObserver(() => {
	const field = document.querySelector(".operation-filter-input");
	if (field && !field.hasAttribute("aria-label")) {
		field.placeholder = "Filter operations: a word, a path, a method";
		field.setAttribute("aria-label", field.placeholder);
		field.type = "search";
	}
}).observe(document.getElementById("swagger-ui"), { childList: true, subtree: true });
