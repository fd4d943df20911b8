"use strict";
// The rows of a list that holds all questions, with what filters need in their data-* attributes.

let passingRows = []; // those that the filter lets through, in their order, shown or not

{
  const $ = (id) => document.getElementById(id);
  const list = $("list");
  const body = list.tBodies[0];
  const headings = [...list.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const STEP = 200; // rows that are laid out at a time
  const memory = `list of ${location.pathname}`;
  let limit = STEP; // how many of those that pass are shown
  let had = ""; // what was chosen last

  const lay = () => {
    for (const row of body.rows) row.hidden = true;
    for (const row of passingRows.slice(0, limit)) row.hidden = false;
    $("more").hidden = passingRows.length <= limit;
  };

  const order = ({ sort, order }) => {
    const column = headings.indexOf(sort);
    if (column < 0) return;
    const key = (row) => row.cells[column].dataset.key;
    const rows = [...body.rows];
    const numeric = rows.every((row) => !isNaN(key(row)));
    const { compare: natural } = new Intl.Collator(undefined, { numeric: true }); // q2 before q10
    const compare = (a, b) => (numeric ? key(a) - key(b) : natural(key(a), key(b)));
    rows.sort((a, b) => (order === "ascending" ? compare(a, b) : compare(b, a)));
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    body.append(...rows);
    focused?.focus({ preventScroll: true }); // what is moved loses it
  };

  const count = () => {
    const found = new Map();
    for (const row of body.rows) {
      for (const tag of row.dataset.tags.split(" ")) found.set(tag, (found.get(tag) ?? 0) + 1);
    }
    for (const input of $("filters").querySelectorAll("[name=tag]")) {
      const number = input.value ? (found.get(input.value) ?? 0) : body.rows.length;
      const label = input.closest("label");
      label.querySelector(".count").textContent = number;
      label.hidden = number === 0 && !input.checked && input.value !== "";
    }
  };

  const show = (chosen) => {
    if (JSON.stringify(chosen) !== had) limit = STEP;
    had = JSON.stringify(chosen);
    count();
    order(chosen);
    const words = chosen.text.toLowerCase().split(/\s+/).filter(Boolean);
    passingRows = [...body.rows].filter(
      (row) =>
        (!chosen.tag || row.dataset.tags.split(" ").includes(chosen.tag)) &&
        (!chosen.level || JSON.parse(row.dataset.levels).includes(chosen.level)) &&
        words.every((word) => row.dataset.text.toLowerCase().includes(word)),
    );
    lay();
    return passingRows.length;
  };

  makeList({
    show,
    more() {
      limit += STEP;
      lay();
    },
    keep(chosen) {
      try {
        sessionStorage.setItem(memory, JSON.stringify(chosen));
      } catch {} // the browser keeps nothing: then nothing is there again
    },
    kept() {
      try {
        return JSON.parse(sessionStorage.getItem(memory));
      } catch {
        return null;
      }
    },
  });
}
