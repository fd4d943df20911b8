"use strict";
// The rows of a list of which the server sends some at a time. The choice is in the page's address,
// and in those of the questions: "next" in a question is the next one of the list as it was shown.

{
  const $ = (id) => document.getElementById(id);
  const list = $("list");
  const body = list.tBodies[0];
  const NAMES = ["tag", "level", "text", "sort", "order"];
  let query = ""; // of the rows that are shown
  let asked = 0; // requests so far
  let shown = body.rows.length;
  let isFirst = shown > 0; // the page came with its first rows

  const ask = async (start) => {
    const ticket = ++asked;
    const address = new URLSearchParams(query);
    address.set("start", start);
    list.setAttribute("aria-busy", true);
    try {
      const answer = await fetch(`${list.dataset.rows}?${address}`);
      if (!answer.ok) throw new Error(answer.statusText);
      const found = await answer.json();
      return ticket === asked ? found : undefined;
    } catch {
      if (ticket === asked) $("shown").value = "the list cannot be read: trying again with the next change";
    } finally {
      if (ticket === asked) list.removeAttribute("aria-busy");
    }
  };

  const figures = () => {
    if (!$("decided")) return;
    const { counts, levels } = $("decided").dataset;
    for (const input of $("filters").querySelectorAll("[name=tag]")) {
      const number = JSON.parse(counts)[input.value] ?? 0;
      const label = input.closest("label");
      label.querySelector(".count").textContent = number.toLocaleString("en");
      label.hidden = number === 0 && !input.checked && input.value !== "";
    }
    for (const level of JSON.parse(levels)) {
      if ([...$("levels").options].some((option) => option.value === level)) continue;
      $("levels").add(new Option(level));
    }
  };

  const lay = (found) => {
    shown = body.rows.length;
    $("more").hidden = shown >= found.count;
    list.dataset.count = found.count;
    return found.count;
  };

  makeList({
    async show() {
      figures();
      if (isFirst) {
        isFirst = false;
        return lay({ count: Number(list.dataset.count) });
      }
      const most = list.dataset.query === query ? Math.max(shown, 1) : 1; // keeps what was unfolded
      list.dataset.query = query;
      let found = await ask(0);
      if (!found) return;
      let rows = found.rows;
      for (let start = 50; start < most && start < found.count; start += 50) {
        const next = await ask(start);
        if (!next) return;
        rows += next.rows;
      }
      const focused = body.contains(document.activeElement) && document.activeElement.closest("tr").id;
      body.innerHTML = rows; // made by the server, which escaped what models wrote
      if (focused) $(focused)?.querySelector("a").focus({ preventScroll: true });
      return lay(found);
    },
    async more() {
      const found = await ask(shown);
      if (!found) return;
      body.insertAdjacentHTML("beforeend", found.rows);
      lay(found);
    },
    keep(chosen) {
      const address = new URLSearchParams();
      for (const name of NAMES) {
        if (chosen[name] && (name !== "order" || (chosen.sort && chosen.order === "descending"))) {
          address.set(name, chosen[name]);
        }
      }
      query = address.toString();
      list.dataset.query ??= query;
      history.replaceState(history.state, "", query ? `?${query}` : location.pathname);
    },
    kept: () => Object.fromEntries(new URLSearchParams(location.search)),
  });
}
