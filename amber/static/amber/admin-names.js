"use strict";
// Gives names to what Unfold and Django leave without: boxes that scroll, fields in tables, halves of a time.
// The words come in the page's language, as data of this script's element.

(() => {
  const words = document.currentScript.dataset;

  // The name of a box that scrolls is read when the box is made, after this.
  const nameBoxes = () => {
    let tables = 0;
    for (const box of document.querySelectorAll("[data-simplebar]")) {
      if (box.closest("nav")) box.dataset.simplebarAriaLabel = words.menu;
      else if (box.querySelector("table")) {
        tables += 1;
        box.dataset.simplebarAriaLabel = tables > 1 ? `${words.table} ${tables}` : words.table;
      } else box.dataset.simplebarAriaLabel = words.filters;
    }
  };

  const isNamed = (field) =>
    field.labels?.length || field.getAttribute("aria-label") || field.getAttribute("aria-labelledby");

  // A field in a row of a table is named by its column, another by what its line or group is called.
  const nameOf = (field) => {
    const cell = field.closest("td");
    const column = cell?.closest("table")?.querySelector(`th.${CSS.escape(cell.className.match(/field-(\S+)/)?.[0].replace("field-", "column-") ?? "none")}`);
    const line = field.closest(".field-line, .field-row, fieldset");
    const said = column ?? line?.querySelector("label, legend");
    return said?.textContent.replace("*", "").trim() ?? "";
  };

  const nameFields = () => {
    for (const field of document.querySelectorAll("main :is(input:not([type=hidden]), select, textarea)"))
      if (!isNamed(field)) {
        const name = nameOf(field);
        if (name) field.setAttribute("aria-label", name);
      }
  };

  // select2 names its boxes after what is chosen alone: put what is asked for in front.
  const nameChoices = () => {
    for (const select of document.querySelectorAll("main select.select2-hidden-accessible")) {
      const box = select.nextElementSibling;
      const label = select.labels?.[0];
      if (label) label.id ||= `label-of-${select.id}`;
      for (const part of box?.querySelectorAll("[role=combobox], [role=textbox], [role=searchbox]") ?? []) {
        const chosen = part.matches("[role=combobox]") ? part.getAttribute("aria-labelledby") : "";
        if (label) part.setAttribute("aria-labelledby", `${label.id} ${chosen ?? ""}`.trim());
        else part.setAttribute("aria-label", select.getAttribute("aria-label") || nameOf(select));
      }
    }
  };

  const nameTheRest = () => {
    nameChoices();
    for (const head of document.querySelectorAll("main th"))
      if (!head.textContent.trim() && !head.querySelector("input")) {
        const unseen = Object.assign(document.createElement("span"), { className: "sr-only", textContent: words.delete });
        head.append(unseen);
      }
    for (const icon of document.querySelectorAll("span.help-tooltip[aria-label]")) icon.setAttribute("role", "img");
  };

  document.addEventListener("DOMContentLoaded", nameBoxes);
  document.addEventListener("DOMContentLoaded", nameFields);
  // Django's own scripts make lists to choose from when everything has loaded.
  window.addEventListener("load", () => setTimeout(nameTheRest));
})();
