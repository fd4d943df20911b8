"use strict";
// The table of runs: sorts, filters and exports it. The choice is kept in the page's address.
{
  const $ = (id) => document.getElementById(id);
  const table = $("board");
  const body = table.tBodies[0];
  const asked = new URLSearchParams(location.search);
  const choices = { dataset: $("of-dataset"), method: $("of-method") };
  let [by, way] = [asked.get("sort") ?? "accuracy", asked.get("order") ?? "descending"];

  const show = () => {
    const sign = way === "ascending" ? 1 : -1;
    const key = (row) => row.dataset[by] ?? "";
    const compare = (a, b) =>
      by === "started" ? key(a).localeCompare(key(b)) : Number(key(a)) - Number(key(b));
    const unknown = (row) => by !== "started" && Number(key(row)) < 0; // comes last either way
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    body.append(...[...body.rows].sort((a, b) => unknown(a) - unknown(b) || sign * compare(a, b)));
    focused?.focus({ preventScroll: true }); // what is moved loses it
    for (const [name, select] of Object.entries(choices)) { // a run that has just ended may bring a new one
      const counts = new Map();
      for (const row of body.rows) counts.set(row.dataset[name], (counts.get(row.dataset[name]) ?? 0) + 1);
      const known = [...select.options].map((option) => option.value);
      for (const value of counts.keys()) if (value && !known.includes(value)) select.add(new Option(value, value));
      for (const option of select.options) {
        if (name === "dataset" && option.value) option.textContent = `${option.value} (${counts.get(option.value) ?? 0})`;
      }
    }
    for (const row of body.rows) {
      row.hidden = Object.entries(choices).some(([name, { value }]) => value && row.dataset[name] !== value);
    }
    for (const cell of table.tHead.rows[0].cells) {
      if (cell.dataset.sort === by) cell.setAttribute("aria-sort", way);
      else cell.removeAttribute("aria-sort");
    }
    $("order").value = `${by} ${way}`;
    const address = new URLSearchParams();
    for (const [name, { value }] of Object.entries(choices)) if (value) address.set(name, value);
    if (by !== "accuracy" || way !== "descending") {
      address.set("sort", by);
      address.set("order", way);
    }
    const query = address.toString();
    history.replaceState(history.state, "", query ? `?${query}` : location.pathname);
  };

  table.tHead.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.closest("th");
    if (!cell) return;
    const { sort, first } = cell.dataset;
    const other = way === "ascending" ? "descending" : "ascending";
    [by, way] = [sort, by === sort ? other : first];
    show();
  });
  $("choices").addEventListener("input", (event) => {
    if (event.target === $("order")) [by, way] = event.target.value.split(" ");
    show();
  });
  table.addEventListener("rows-changed", show);

  const exported = () => {
    const of = (row, select) => row.querySelector(select)?.textContent.replace(/\s+/g, " ").trim() ?? "";
    const label = (row, name) => of(row, `[data-label="${name}"]`);
    const names = ["rank", "data set", "method", "questions", "accuracy", "USD / 1,000", "tokens / question", "started, UTC"];
    const rows = [...body.rows].filter((row) => !row.hidden && row.dataset.dataset);
    return [
      ["model", ...names, "run"],
      ...rows.map((row) => [of(row, ".who b"), ...names.map((name) => label(row, name)), row.dataset.name]),
    ];
  };
  const FORMS = {
    // A cell that begins like a formula would be computed by a spreadsheet; Excel reads UTF-8 only
    // after a byte order mark.
    csv: (rows) => "\ufeff" + rows.map((cells) => cells.map((cell) => `"${cell.replace(/^[=+@-]/, "'$&").replaceAll('"', '""')}"`).join(",")).join("\r\n"),
    md: ([head, ...rows]) => [head, head.map(() => "---"), ...rows]
      .map((cells) => `| ${cells.map((cell) => cell.replace(/[\\|`*_<>[\]]/g, "\\$&")).join(" | ")} |`).join("\n"),
  };
  document.addEventListener("click", (event) => {
    const form = event.target.closest("[data-export]")?.dataset.export;
    if (!form) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([FORMS[form](exported()), "\n"], { type: "text/plain" }));
    link.download = `runs.${form}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });

  for (const [name, select] of Object.entries(choices)) select.value = asked.get(name) ?? "";
  show();
}
