"use strict";
// Light, dark or as the system has it. It runs in the head, so that no page flashes in another one.
// A button [data-theme-switch] goes from one to the next.
{
  const root = document.documentElement;
  const KEY = "mdagents-theme";
  const THEMES = ["system", "light", "dark"];

  const remembered = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // a browser may allow a file no storage
    }
  };
  const remember = (theme) => {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // then it lasts as long as the page
    }
  };
  const used = () => root.dataset.theme ?? "system";
  const use = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  const label = () => {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.title = `Theme: ${used()}`;
      button.setAttribute("aria-label", button.title);
    }
  };

  use(remembered());
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-switch]")) return;
    const next = THEMES[(THEMES.indexOf(used()) + 1) % THEMES.length];
    use(next);
    remember(next);
    label();
  });
  document.addEventListener("DOMContentLoaded", label);
}
