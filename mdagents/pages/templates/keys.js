"use strict";
// The keyboard, the same on all pages. What a page has of the following is used:
//
//     #list, #board                      their rows: j and k go from link to link, Enter follows one
//     [data-shortcut="next"], "previous" a button or link to another question, while it is visible
//     [data-shortcut="close"]            what leaves a question; in a dialog Esc closes by itself
//     [data-shortcut="help"]             a button that shows the keys
//     input[type=search]                 where / goes
{
  const KEYS = [
    ["j, k", "the next or previous question, in the list and in a transcript"],
    ["→, ←", "the same in a transcript; in a picture, the next or previous one"],
    ["Enter", "opens the question"],
    ["/", "searches"],
    ["Esc", "closes what is open, or goes up"],
    ["?", "shows these keys"],
  ];

  const visible = (selector) => {
    const within = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
    return [...within.querySelectorAll(selector)].find((element) => element.checkVisibility());
  };
  const isDialogOpen = () => document.querySelector("dialog[open]") !== null;
  const shortcut = (name) => visible(`[data-shortcut="${name}"]`);

  const help = document.createElement("dialog");
  const make = (parent, name, text) => {
    const element = document.createElement(name);
    element.textContent = text;
    parent.append(element);
    return element;
  };
  help.id = "keys";
  help.setAttribute("aria-labelledby", "keys-title");
  make(help, "h2", "Keys").id = "keys-title";
  const meanings = make(help, "dl", "");
  for (const [key, meaning] of KEYS) {
    make(make(meanings, "dt", ""), "kbd", key);
    make(meanings, "dd", meaning);
  }
  const close = make(help, "button", "close");
  close.type = "button";
  close.addEventListener("click", () => help.close());
  document.body.append(help);
  const showHelp = () => {
    if (!help.open) help.showModal();
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest('[data-shortcut="help"]')) showHelp();
  });

  const walk = (by) => {
    const links = [...document.querySelectorAll(":is(#list, #board) tbody tr:not([hidden]) td a")];
    const here = links.indexOf(document.activeElement?.closest?.("tr")?.querySelector("a"));
    links[here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by]?.focus();
  };

  // Each returns what it acted on; where there is nothing, the key does what it does elsewhere.
  const press = (name) => {
    const element = shortcut(name);
    element?.click();
    return element;
  };
  const does = {
    j: () => press("next") ?? (isDialogOpen() || walk(1)),
    k: () => press("previous") ?? (isDialogOpen() || walk(-1)),
    ArrowRight: () => press("next"),
    ArrowLeft: () => press("previous"),
    "/": () => {
      const search = visible("input[type=search]");
      search?.focus();
      return search;
    },
    "?": () => showHelp() ?? help,
    Escape: () => (isDialogOpen() ? null : press("close")),
  };
  const isTyping = (element) =>
    element.matches("input:not([type=radio], [type=checkbox]), textarea, select") ||
    element.isContentEditable;

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isArrowOfRadio = event.key.startsWith("Arrow") && event.target.matches("[type=radio]");
    if (isArrowOfRadio || !Object.hasOwn(does, event.key)) return;
    if (does[event.key]()) event.preventDefault();
  });
}
