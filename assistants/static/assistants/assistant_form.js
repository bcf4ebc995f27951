// Lays an assistant's form on tabs: click, arrow keys, Home and End. Without it all parts lie below
// each other. The tab that was open last opens again; one with a mistake comes first.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".assistant-tabs");
  if (!list) return;
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const panels = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));
  const memory = `assistant-tab ${window.location.pathname}`;

  function open(tab) {
    tabs.forEach((each, place) => {
      each.setAttribute("aria-selected", String(each === tab));
      each.tabIndex = each === tab ? 0 : -1;
      panels[place].hidden = each !== tab;
    });
    sessionStorage.setItem(memory, tab.id);
    list.scrollLeft = Math.max(tab.offsetLeft - list.offsetLeft - 24, 0);
  }

  const KEYS = {
    ArrowRight: (place) => (place + 1) % tabs.length,
    ArrowLeft: (place) => (place + tabs.length - 1) % tabs.length,
    Home: () => 0,
    End: () => tabs.length - 1,
  };
  list.addEventListener("keydown", (event) => {
    const next = KEYS[event.key]?.(tabs.indexOf(event.target));
    if (next === undefined) return;
    event.preventDefault();
    open(tabs[next]);
    tabs[next].focus();
  });
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) open(tab);
  });

  list.hidden = false;
  document.documentElement.classList.add("assistant-tabbed");
  const wrong = tabs.find((tab) => tab.dataset.mistakes !== "0");
  open(wrong ?? tabs.find((tab) => tab.id === sessionStorage.getItem(memory)) ?? tabs[0]);
});
