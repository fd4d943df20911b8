"use strict";
// The pictures of questions. A report holds each of them once, as the text of the element
// `picture-KEY`, from which an image with data-picture="KEY" is filled. A click on one opens the
// picture over the page, where keys.js does "previous" and "next".
const pictures = (() => {
  const $ = (id) => document.getElementById(id);
  const make = (parent, name, text, more = {}) => {
    const element = Object.assign(document.createElement(name), { textContent: text }, more);
    parent.append(element);
    return element;
  };

  const instead = (image, why) => {
    const place = document.createElement("span");
    place.className = "no-picture";
    place.textContent = why;
    (image.closest(".opens") ?? image).replaceWith(place);
  };
  const fill = (root) => {
    for (const image of root.querySelectorAll("img[data-picture]")) {
      const held = $(`picture-${image.dataset.picture}`);
      if (held?.textContent) image.src = held.textContent;
      else instead(image, held ? "Its copy cannot be read" : "Left out, to keep this report small");
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    if ($("pictures-note")) $("filters").before($("pictures-note"));
  });
  document.addEventListener("error", (event) => {
    if (event.target.matches?.(".picture img")) instead(event.target, "It cannot be shown");
  }, true);

  const dialog = document.createElement("dialog");
  dialog.id = "picture";
  dialog.setAttribute("aria-labelledby", "picture-title");
  const header = make(dialog, "header", "");
  const title = make(header, "h2", "", { id: "picture-title" });
  const nav = make(header, "nav", "");
  const button = (name, hint) => {
    const made = make(nav, "button", name, { type: "button", title: hint });
    made.dataset.shortcut = name;
    return made;
  };
  const [previous, next, close] = [
    button("previous", "k, left arrow"), button("next", "j, right arrow"), button("close", "Esc"),
  ];
  const caption = make(header, "p", "");
  const note = make(header, "p", "", { className: "soft" });
  const frame = make(dialog, "button", "", { type: "button", className: "frame" });
  document.body.append(dialog);

  let shown = null; // the thumbnail's link or button
  const current = () => {
    const href = shown.getAttribute("href");
    if (shown.isConnected || !href) return shown;
    return document.querySelector(`.opens[href="${CSS.escape(href)}"]`) ?? shown; // sent anew
  };
  const others = () => {
    const around = current().closest(".question, .under-way");
    return [...(around?.querySelectorAll(".opens") ?? [])];
  };
  const show = (opener) => {
    shown = opener;
    const small = opener.querySelector("img");
    const isReduced = "reduced" in ($(`picture-${small.dataset.picture}`)?.dataset ?? {});
    dialog.classList.remove("whole");
    const { width, height } = small.dataset;
    // The whole picture, unless it is reduced.
    frame.replaceChildren(Object.assign(new Image(), { alt: small.alt, width, height, src: small.src }));
    title.textContent = small.dataset.title;
    caption.textContent = opener.parentElement.querySelector(".words")?.textContent ?? "";
    note.textContent = isReduced ? "thumbnail: this report has no room for its full size" : "";
    const all = others();
    previous.hidden = all[0] === opener;
    next.hidden = all.at(-1) === opener;
    if (!dialog.open) dialog.showModal();
  };
  const step = (by) => {
    const all = others();
    const other = all[all.indexOf(current()) + by];
    if (other) show(other);
  };
  document.addEventListener("click", (event) => {
    const opener = event.target.closest?.(".opens");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(opener);
  });
  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  close.addEventListener("click", () => dialog.close());
  frame.addEventListener("click", () => dialog.classList.toggle("whole"));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside the picture
  });
  dialog.addEventListener("close", () => current().focus());
  return { fill };
})();
