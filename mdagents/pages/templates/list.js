"use strict";
// Sorts, filters and searches the list of questions (list.html), and shows it in parts. A click on
// a row is one on its link, wherever that leads. A script that adds, replaces or removes rows, or
// changes their data-* attributes, says so:
//
//     document.getElementById("list").dispatchEvent(new Event("rows-changed"));

let passingRows = []; // those that the filter lets through, in their order, shown or not

{
  const $ = (id) => document.getElementById(id);
  const list = $("list");
  const body = list.tBodies[0];
  const form = $("filters");
  const headings = [...list.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const STEP = 200; // rows that are laid out at a time
  const levels = new Map(); // row -> its levels
  let rows = []; // in the order in which they are sorted
  let limit = STEP; // how many of those that pass are shown
  let sorted = null; // the heading that the list is sorted by

  const lay = () => {
    for (const row of rows) row.hidden = true;
    for (const row of passingRows.slice(0, limit)) {
      row.hidden = false;
      for (const cell of row.cells) cell.dataset.label ??= headings[cell.cellIndex];
    }
    $("more").hidden = passingRows.length <= limit;
    $("shown").value = `${passingRows.length} found`;
  };

  const filter = () => {
    const wanted = new FormData(form);
    const [tag, level] = [wanted.get("tag"), wanted.get("level")];
    const words = wanted.get("text").toLowerCase().split(/\s+/).filter(Boolean);
    passingRows = rows.filter(
      (row) =>
        (!tag || row.dataset.tags.split(" ").includes(tag)) &&
        (!level || levels.get(row).includes(level)) &&
        words.every((word) => row.dataset.text.toLowerCase().includes(word)),
    );
    lay();
    keep();
  };

  // What is chosen is there again when one comes back, and "next" in a question is the next of these.
  const memory = `list of ${location.pathname}`;
  const keep = () => {
    const chosen = Object.fromEntries(new FormData(form));
    const direction = sorted?.getAttribute("aria-sort");
    const isChosen = Object.values(chosen).some(Boolean) || sorted;
    const links = passingRows.map((row) => row.querySelector("a").getAttribute("href"));
    const kept = { chosen, column: sorted?.cellIndex, direction, links };
    try {
      if (isChosen) sessionStorage.setItem(memory, JSON.stringify(kept));
      else sessionStorage.removeItem(memory);
    } catch {} // the browser keeps nothing: then nothing is there again
  };
  const restore = () => {
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(memory));
    } catch {}
    if (!kept) return;
    for (const [name, value] of Object.entries(kept.chosen)) form.elements[name].value = value;
    sorted = list.tHead.rows[0].cells[kept.column] ?? null;
    sorted?.setAttribute("aria-sort", kept.direction);
  };

  const order = () => {
    const ascending = sorted.getAttribute("aria-sort") === "ascending";
    const key = (row) => row.cells[sorted.cellIndex].dataset.key;
    const numeric = rows.every((row) => !isNaN(key(row)));
    const { compare: natural } = new Intl.Collator(undefined, { numeric: true }); // q2 before q10
    const compare = (a, b) => (numeric ? key(a) - key(b) : natural(key(a), key(b)));
    rows.sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
    body.append(...rows);
  };

  const count = () => {
    const found = new Map();
    for (const row of rows) {
      for (const tag of row.dataset.tags.split(" ")) found.set(tag, (found.get(tag) ?? 0) + 1);
    }
    for (const input of form.querySelectorAll("[name=tag]")) {
      const number = input.value ? (found.get(input.value) ?? 0) : rows.length;
      const label = input.closest("label");
      label.querySelector(".count").textContent = number;
      label.hidden = number === 0 && !input.checked && input.value !== "";
    }
  };

  const read = () => {
    rows = [...body.rows];
    levels.clear();
    for (const row of rows) levels.set(row, JSON.parse(row.dataset.levels));
    if (sorted) order();
    filter();
  };

  form.addEventListener("input", () => {
    limit = STEP;
    filter();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  list.addEventListener("rows-changed", () => {
    read();
    count();
  });
  list.tHead.addEventListener("click", (event) => {
    if (!event.target.matches("button")) return;
    sorted = event.target.closest("th");
    const next = sorted.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of sorted.parentNode.cells) other.removeAttribute("aria-sort");
    sorted.setAttribute("aria-sort", next);
    order();
    limit = STEP;
    filter();
  });
  body.addEventListener("click", (event) => {
    if (event.target.closest("a") || event.ctrlKey || event.metaKey) return;
    if (getSelection().toString()) return;
    event.target.closest("tr").querySelector("a").click();
  });
  $("more").addEventListener("click", () => {
    limit += STEP;
    lay();
  });
  new IntersectionObserver(([end]) => end.isIntersecting && $("more").click()).observe($("more"));
  restore();
  read();
}
