"use strict";
// Puts what the server sends into its place. The server says what has changed as HTML that it made
// of the page's own templates; this knows nothing of what the parts mean.
{
  const $ = (id) => document.getElementById(id);
  const { events, after, again } = document.body.dataset;
  const ALOUD = 1000; // ms between two announcements
  const HIDDEN = 2000; // ms after which a hidden tab closes its stream
  let spoken = 0;

  // HTML in the place where it goes: rows of a table and parts of a drawing need their parent.
  const made = (parent, html) => {
    const range = document.createRange();
    range.selectNodeContents(parent);
    return range.createContextualFragment(html.trim());
  };

  const does = {
    put(id, into, html) {
      const old = $(id);
      const parent = old?.parentElement ?? $(into);
      if (!parent) return;
      const fresh = made(parent, html);
      const ticked = [...(old?.querySelectorAll(":checked") ?? [])].map((box) => box.value);
      const focused = old?.contains(document.activeElement) && document.activeElement.getAttribute("href");
      for (const box of fresh.querySelectorAll("[type=checkbox]")) box.checked = ticked.includes(box.value);
      if (old) old.replaceWith(fresh);
      else if ("newestFirst" in parent.dataset) parent.prepend(fresh);
      else parent.append(fresh);
      if (focused) $(id)?.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    },
    add(id, text) {
      $(id)?.append(text);
      $(id)?.normalize();
    },
    drop(id) {
      $(id)?.remove();
    },
    keep(_, ...ids) {
      const there = new Set(ids);
      for (const part of document.querySelectorAll("[data-parts] > [id]")) {
        if (!there.has(part.id)) part.remove();
      }
    },
  };

  const announce = () => {
    const state = $("state")?.textContent.replace(/\s+/g, " ").trim();
    if (!state || Date.now() - spoken < ALOUD || $("aloud").textContent === state) return;
    spoken = Date.now();
    $("aloud").textContent = state;
  };

  const tick = () => {
    for (const element of document.querySelectorAll("[data-since]")) {
      const seconds = Math.max(0, (Date.now() - Number(element.dataset.since)) / 1000);
      element.textContent = `${seconds.toFixed(0)} s`;
    }
  };

  const update = (operations) => {
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 60;
    let rows = false;
    for (const [what, id, ...rest] of operations) {
      does[what](id, ...rest);
      rows ||= id === "decided" || rest[0] === "rows";
    }
    if (rows) ($("list") ?? $("board"))?.dispatchEvent(new Event("rows-changed"));
    if (atEnd && $("turns")) scrollTo({ top: document.documentElement.scrollHeight });
    const started = document.querySelector("#question[data-started]")?.dataset.started;
    if (started) question.light(Date.now() - Number(started));
    if ($("replay")) question.offerReplay(); // it may have been decided just now
    tick();
    announce();
  };

  setInterval(tick, 1000);
  tick();
  const say = (text, isLost = false) => {
    $("connection").textContent = text;
    $("connection").classList.toggle("lost", isLost);
  };
  let source = null;
  let seen = after; // number of the last change that is shown
  const listen = () => {
    source = new EventSource(`${events}${events.includes("?") ? "&" : "?"}after=${seen}`);
    source.onmessage = (event) => {
      seen = event.lastEventId || seen;
      update(JSON.parse(event.data));
    };
    source.onopen = () => say("");
    source.onerror = () => {
      // A hidden tab is not told that the run has ended, and the view with it.
      const ended = again ? `. If the run has ended, this shows it: ${again}` : "";
      say(`connection lost: trying again${ended}`, true);
      // The server answers, but has no such stream any more.
      if (source.readyState === EventSource.CLOSED) location.reload();
    };
    // Nothing will change any more; without a word about it something else is to be seen now.
    source.addEventListener("end", (event) => {
      source.close();
      document.removeEventListener("visibilitychange", listenWhenSeen);
      const words = JSON.parse(event.data);
      if (words) say(words);
      else location.reload();
    });
  };
  // A browser opens six connections to a server, for all tabs together, and a stream takes one: with
  // as many tabs, the next page would never load. A hidden tab closes its stream.
  let leaving = 0;
  const listenWhenSeen = () => {
    clearTimeout(leaving);
    if (document.hidden) leaving = setTimeout(() => source?.close(), HIDDEN);
    else if (!source || source.readyState === EventSource.CLOSED) listen();
  };
  if (events) {
    document.addEventListener("visibilitychange", listenWhenSeen);
    listenWhenSeen();
  }
  if ($("replay")) question.offerReplay();

  // What takes seconds says so until the answer is there.
  document.addEventListener("click", (event) => {
    const wait = event.target.closest("[data-wait]")?.dataset.wait;
    if (!wait || event.ctrlKey || event.metaKey || event.shiftKey) return;
    say(wait);
    addEventListener("pagehide", () => say(""), { once: true });
  });

  // The list of runs: two that are ticked can be compared.
  const form = $("compare");
  const count = () => {
    form.querySelector("button").disabled = form.querySelectorAll(":checked").length < 2;
  };
  form?.addEventListener("change", count);
  if (form) count();
}
