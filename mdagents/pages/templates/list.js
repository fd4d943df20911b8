"use strict";
// The form and the headings above a list of questions (list.html). Where the rows come from is in
// list_of_page.js (a report holds them all) and in list_of_server.js (a live page asks for some):
//
//     show(chosen)  lays out the rows that are chosen and returns how many there are
//     more()        lays out more of them
//     keep(chosen)  remembers a choice; kept() returns the one that was remembered
//
// `chosen` has tag, level, text, sort (the text of a heading) and order. A click on a row is one on
// its link, wherever that leads. A script that changes rows or their figures says so:
//
//     document.getElementById("list").dispatchEvent(new Event("rows-changed"));

const makeList = ({ show, more, keep, kept }) => {
  const $ = (id) => document.getElementById(id);
  const list = $("list");
  const form = $("filters");
  const headings = [...list.tHead.rows[0].cells];
  const nameOf = (cell) => cell.querySelector("button")?.textContent.trim() ?? "";
  const orders = { ascending: "descending", descending: "ascending" };
  let [sort, order] = ["", ""];

  const label = () => {
    for (const row of list.tBodies[0].rows) {
      if (row.hidden) continue;
      for (const cell of row.cells) {
        const name = nameOf(headings[cell.cellIndex]);
        if (name) cell.dataset.label ??= name;
      }
    }
  };

  const lay = async () => {
    const words = new FormData(form);
    const chosen = { tag: words.get("tag"), level: words.get("level"), text: words.get("text"), sort, order };
    for (const cell of headings) cell.removeAttribute("aria-sort");
    headings.find((cell) => sort && nameOf(cell) === sort)?.setAttribute("aria-sort", order);
    if ($("sort-by")) $("sort-by").value = sort && `${sort} ${order}`;
    keep(chosen);
    const found = await show(chosen);
    if (found === undefined) return; // something else was chosen meanwhile
    $("shown").value = `${found.toLocaleString("en")} found`;
    label();
  };

  form.addEventListener("input", (event) => {
    if (event.target.id === "sort-by") {
      const [, name, way] = event.target.value.match(/^(.*) (\w+)$/) ?? ["", "", ""];
      [sort, order] = [name, way];
    }
    lay();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  list.addEventListener("rows-changed", lay);
  list.tHead.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.closest("th");
    if (!cell) return;
    [sort, order] = [nameOf(cell), orders[cell.getAttribute("aria-sort")] ?? "ascending"];
    lay();
  });
  list.tBodies[0].addEventListener("click", (event) => {
    if (event.target.closest("a") || event.ctrlKey || event.metaKey) return;
    if (getSelection().toString()) return;
    event.target.closest("tr").querySelector("a").click();
  });
  $("more").addEventListener("click", async () => {
    await more();
    label();
  });
  new IntersectionObserver(([end]) => end.isIntersecting && $("more").click()).observe($("more"));

  const before = kept() ?? {};
  for (const name of ["tag", "level", "text"]) {
    if (before[name]) form.elements[name].value = before[name];
  }
  [sort, order] = [before.sort ?? "", before.order || "ascending"];
  lay();
};
