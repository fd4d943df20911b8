"use strict";
// Light, dark or as the system has it. It runs in the head, so that no page flashes in another one.
// The switch is in theme.html.
{
  const root = document.documentElement;
  const KEY = "mdagents-theme";

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
  const use = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  const showChoice = () => {
    const chosen = root.dataset.theme ?? "system";
    for (const choice of document.getElementsByName("theme")) choice.checked = choice.value === chosen;
  };

  use(remembered());
  document.addEventListener("change", (event) => {
    if (event.target.name !== "theme") return;
    use(event.target.value);
    remember(event.target.value);
  });
  document.addEventListener("DOMContentLoaded", showChoice);
}
