"use strict";
{
  const $ = (id) => document.getElementById(id);
  const body = $("list").tBodies[0];
  const rows = [...body.rows];
  const levels = new Map(rows.map((row) => [row, JSON.parse(row.dataset.levels)]));
  const form = $("filters");
  const dialog = $("case");
  const STEP = 200; // rows that are laid out at a time
  let passing = rows; // rows that the filter lets through
  let limit = STEP; // how many of them are shown
  let open = null; // row whose transcript is shown
  let run = 0; // whose transcript
  let asked = 0; // how many transcripts were asked for

  const lay = () => {
    for (const row of rows) row.hidden = true;
    for (const row of passing.slice(0, limit)) row.hidden = false;
    $("more").hidden = passing.length <= limit;
    $("shown").value = `${passing.length} found`;
  };

  const filter = () => {
    const wanted = new FormData(form);
    const [tag, level] = [wanted.get("tag"), wanted.get("level")];
    const words = wanted.get("text").toLowerCase().split(/\s+/).filter(Boolean);
    passing = rows.filter(
      (row) =>
        (!tag || row.dataset.tags.split(" ").includes(tag)) &&
        (!level || levels.get(row).includes(level)) &&
        words.every((word) => row.dataset.text.toLowerCase().includes(word)),
    );
    limit = STEP;
    lay();
  };

  const sort = (heading) => {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => row.cells[heading.cellIndex].dataset.key;
    const numeric = rows.every((row) => !isNaN(key(row)));
    const compare = (a, b) => (numeric ? key(a) - key(b) : key(a).localeCompare(key(b)));
    rows.sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
    body.append(...rows);
    filter();
  };

  const unpack = async (element) => {
    const bytes = Uint8Array.from(atob(element.textContent), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };

  const show = async (row) => {
    open = row;
    const ticket = ++asked;
    $("case-title").textContent = `Question ${row.cells[0].textContent}`;
    for (const button of $("runs").children) {
      button.setAttribute("aria-current", Number(button.dataset.run) === run);
    }
    const html = await unpack($(`t${row.id.slice(1)}-${run}`));
    if (ticket !== asked) return; // another one was asked for meanwhile
    $("transcript").innerHTML = html; // made by the program, which escaped what models wrote
    question.stop();
    question.offerReplay();
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    history.replaceState(null, "", `#${row.id}`);
  };

  const step = (by) => {
    const next = passing[passing.indexOf(open) + by];
    if (next) show(next);
  };

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  $("list").tHead.addEventListener("click", (event) => {
    if (event.target.matches("button")) sort(event.target.closest("th"));
  });
  body.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || getSelection().toString()) return;
    event.preventDefault();
    show(event.target.closest("tr"));
  });
  $("runs").addEventListener("click", (event) => {
    if (!event.target.matches("button")) return;
    run = Number(event.target.dataset.run);
    show(open);
  });
  $("more").addEventListener("click", () => {
    limit += STEP;
    lay();
  });
  new IntersectionObserver(([end]) => end.isIntersecting && $("more").click()).observe($("more"));
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("close").addEventListener("click", () => dialog.close());
  document.addEventListener("keydown", (event) => {
    if (!dialog.open || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  dialog.addEventListener("close", () => {
    history.replaceState(null, "", "#questions");
    open?.querySelector("a").focus();
    open = null;
    asked++;
  });
  // The transcripts are behind this script: a link to one has to wait for them.
  const follow = () => {
    const row = /^#q\d+$/.test(location.hash) && $(location.hash.slice(1));
    if (row) show(row);
  };
  document.addEventListener("DOMContentLoaded", follow);
  addEventListener("hashchange", follow);
  filter();
}
