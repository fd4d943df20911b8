"use strict";
// Opens the transcripts that are packed in the page, over the list.
{
  const $ = (id) => document.getElementById(id);
  const dialog = $("case");
  let open = null; // row whose transcript is shown
  let run = 0; // whose transcript
  let asked = 0; // how many transcripts were asked for

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
    pictures.fill($("transcript"));
    question.stop();
    question.offerReplay();
    if (dialog.open || location.hash === `#${row.id}`) {
      history.replaceState(history.state, "", `#${row.id}`);
    } else {
      history.pushState({ opened: true }, "", `#${row.id}`); // Back closes it
    }
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };

  const step = (by) => {
    const next = passingRows[passingRows.indexOf(open) + by];
    if (next) show(next);
  };

  $("list").addEventListener("click", (event) => {
    const link = event.target.closest("tbody a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(link.closest("tr"));
  });
  $("runs").addEventListener("click", (event) => {
    if (!event.target.matches("button")) return;
    run = Number(event.target.dataset.run);
    show(open);
  });
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("close").addEventListener("click", () => dialog.close());
  const address = () => /^#q\d+$/.test(location.hash) && $(location.hash.slice(1));
  const forget = () => {
    open?.querySelector("a").focus();
    open = null;
    asked++;
  };
  let byAddress = 0; // closings of which the event, which comes later, has nothing left to do
  dialog.addEventListener("close", () => {
    if (byAddress) return void byAddress--;
    if (address() && history.state?.opened) history.back();
    else if (address()) history.replaceState(null, "", "#questions");
    forget();
  });
  // The transcripts are behind this script: a link to one has to wait for them.
  const follow = () => {
    const row = address();
    if (row && row !== open) show(row);
    else if (!row) {
      if (dialog.open) byAddress++;
      dialog.close();
      forget();
    }
  };
  document.addEventListener("DOMContentLoaded", follow);
  addEventListener("hashchange", follow);
}
