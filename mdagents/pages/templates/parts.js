"use strict";
// What the parts of parts.html do on every page: a <button data-copy="…"> copies the text, and a
// menu closes when something in it is chosen or one clicks elsewhere.
{
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a page that is not from a secure address
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) {
      await copy(button.dataset.copy);
      button.dataset.copied = "";
      setTimeout(() => delete button.dataset.copied, 1500);
    }
    const used = event.target.closest(".menu > div button");
    for (const menu of document.querySelectorAll(".menu[open]")) {
      if (used || !menu.contains(event.target)) menu.open = false;
    }
  });
}
