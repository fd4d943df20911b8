"use strict";
// The page of a question: what leads to a turn, what a summary was made from, and the replay.
// A page may show one question after the other, so nothing is kept about a question between calls.
const question = (() => {
  const $ = (id) => document.getElementById(id);
  const numbers = (words) => (words ? words.split(" ").map(Number) : []);
  let timer = 0; // of the replay
  const LIT = 4000; // ms for which a message stays lit

  // An `<a data-from data-to>` leads to a sentence of its turn: characters, counted as code points.
  const mark = (link) => {
    const said = $(`${link.hash.slice(1)}-said`);
    if (!said?.firstChild || !window.Highlight) return;
    const text = said.textContent;
    const unit = (point) => [...text].slice(0, point).join("").length;
    const range = new Range();
    range.setStart(said.firstChild, Math.min(unit(Number(link.dataset.from)), said.firstChild.length));
    range.setEnd(said.firstChild, Math.min(unit(Number(link.dataset.to)), said.firstChild.length));
    CSS.highlights.set("origin", new Highlight(range));
    return range;
  };

  const point = (elements, on) => {
    for (const element of elements) element?.classList.toggle("pointed", on);
  };

  const pointed = (event, on) => {
    const card = event.target.closest?.(".summary");
    if (card) point(numbers(card.dataset.turns).map((index) => $(`turn-${index}`)), on);
    const link = event.target.closest?.("a.phrase[data-from]");
    if (link && on) mark(link);
  };

  const follow = (event) => {
    const link = event.target.closest?.('a[href^="#turn-"]');
    const turn = link && $(link.hash.slice(1));
    if (!turn || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const range = link.dataset.from && mark(link);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    turn.classList.remove("future");
    turn.focus({ preventScroll: true });
    turn.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "center" });
    if (range) {
      const said = range.startContainer.parentElement; // a long one scrolls by itself
      said.scrollIntoView({ block: "center" });
      const above = range.getBoundingClientRect().top - said.getBoundingClientRect().top;
      said.scrollTop += above - said.clientHeight / 2;
    }
    point(document.querySelectorAll(".turn.pointed"), false);
    point([turn], true);
  };

  // Arrows light up when their message is sent: `now` is a moment of the question, in ms.
  const light = (now) => {
    for (const arrow of document.querySelectorAll(".arrow")) {
      const last = Math.max(...numbers(arrow.dataset.at).filter((at) => at <= now));
      const age = now - last;
      arrow.classList.toggle("future", !Number.isFinite(last));
      arrow.classList.toggle("lit", age < LIT);
      for (const path of arrow.querySelectorAll("path")) path.style.animationDelay = `-${age}ms`;
    }
  };

  // Shows the question as it stood at a moment; what was said by then is reckoned from the length
  // of a turn and its time.
  const show = (now) => {
    const whole = now >= Number($("moment").max);
    const held = new Map();
    for (const turn of document.querySelectorAll(".turn")) {
      const head = turn.querySelector("header").dataset;
      const [at, ended] = [Number(turn.dataset.at), Number(head.ended ?? Infinity)];
      const said = turn.querySelector(".said");
      said.dataset.whole ??= said.textContent;
      const share = now >= ended ? 1 : (now - at) / (ended - at);
      const text = said.dataset.whole;
      const shown = whole || share >= 1 ? text : text.slice(0, Math.max(0, Math.round(text.length * share)));
      if (said.textContent !== shown) said.textContent = shown;
      turn.classList.toggle("future", !whole && at > now);
      for (const known of turn.querySelectorAll(".gives, .spent, .why, .to")) {
        known.classList.toggle("future", !whole && ended > now);
      }
      for (const bar of document.querySelectorAll(`.lanes a[href="#${turn.id}"]`)) {
        bar.classList.toggle("future", !whole && at > now);
      }
      if (head.votes && (whole || ended <= now)) held.set(turn.dataset.by, head.votes);
    }
    for (const section of document.querySelectorAll(".step")) {
      section.classList.toggle("future", !section.querySelector(".turn:not(.future)"));
    }
    for (const element of document.querySelectorAll(".summary, .strip a")) {
      element.classList.toggle("future", !whole && Number(element.dataset.at) > now);
    }
    for (const node of document.querySelectorAll(".node[data-agent]")) {
      const holds = node.querySelector(".holds");
      holds.dataset.whole ??= holds.querySelector("text").textContent;
      const letter = whole ? holds.dataset.whole : held.get(node.dataset.agent) ?? "";
      holds.querySelector("text").textContent = letter;
      holds.setAttribute("visibility", letter ? "visible" : "hidden");
      const speaks = [...document.querySelectorAll(".turn")].some(
        (turn) => turn.dataset.by === node.dataset.agent && !whole &&
          Number(turn.dataset.at) <= now && Number(turn.querySelector("header").dataset.ended) > now,
      );
      node.classList.toggle("speaking", speaks);
    }
    for (const option of document.querySelectorAll(".options li")) {
      const votes = option.querySelector(".votes");
      votes.dataset.whole ??= votes.textContent;
      const count = [...held.values()].filter((letter) => letter === option.dataset.letter).length;
      votes.textContent = whole ? votes.dataset.whole : count ? `${count} vote${count > 1 ? "s" : ""}` : "";
      option.querySelector(".decided")?.classList.toggle("future", !whole);
    }
    for (const end of document.querySelectorAll("#state, #end, .figures, .holders, .lanes .tokens")) {
      end.classList.toggle("future", !whole);
    }
    light(whole ? Infinity : now);
    $("clock").value = whole ? "as it ended" : `after ${(now / 1000).toFixed(1)} s`;
  };

  const stop = () => {
    clearInterval(timer);
    timer = 0;
    $("play")?.replaceChildren("▶");
    $("play")?.setAttribute("aria-label", "play");
  };

  const play = () => {
    if (timer) return stop();
    const slider = $("moment");
    const end = Number(slider.max);
    if (Number(slider.value) >= end) slider.value = 0;
    $("play").replaceChildren("❚❚");
    $("play").setAttribute("aria-label", "pause");
    timer = setInterval(() => {
      if (!$("moment")) return stop();
      // Without a speed, a whole question takes half a minute at most.
      slider.value = Number(slider.value) + 100 * (Number($("speed").value) || Math.max(1, end / 30_000));
      show(Number(slider.value));
      if (Number(slider.value) >= end) stop();
    }, 100);
  };

  // Offers the replay, once a question is decided and its turns have times.
  const offerReplay = () => {
    const form = $("replay");
    const length = Number($("decision")?.dataset.length);
    if (!form?.hidden || !length) return;
    const { step } = $("moment");
    const end = Math.ceil(length / step) * step; // a slider stops at whole steps
    form.hidden = false;
    $("moment").max = end;
    $("moment").value = end;
    show(end);
    const { speed } = form.dataset; // of a trace, which begins by itself
    if (!speed) return;
    if (![...$("speed").options].some((option) => option.value === speed)) $("speed").append(new Option(`${speed}×`, speed));
    $("speed").value = speed;
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play();
  };

  // Brings the summaries beside a turn into view while one reads.
  const beside = () => {
    const cards = $("cards");
    if (!cards || getComputedStyle(cards).position !== "sticky") return;
    const line = innerHeight / 2;
    const scroller = cards.closest("dialog") ?? document.documentElement;
    const isAtEnd = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 4;
    const turns = [...document.querySelectorAll(".turn:not(.future)")];
    const read = turns.findLast((turn) => isAtEnd || turn.getBoundingClientRect().top <= line);
    if (!read) return;
    const index = Number(read.id.slice("turn-".length));
    const near = [...cards.children].find((card) =>
      numbers(card.dataset.turns).some((of) => of <= index),
    );
    for (const card of cards.children) card.classList.toggle("near", card === near);
    if (near && !cards.matches(":hover")) {
      cards.scrollTop = near.offsetTop - 8; // within `cards`, which is positioned
    }
  };

  let waits = false;
  const scrolled = () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      beside();
    });
  };

  document.addEventListener("click", (event) => {
    follow(event);
    if (event.target.id === "play") play();
  });
  document.addEventListener("input", (event) => {
    if (event.target.id !== "moment") return;
    stop();
    show(Number(event.target.value));
  });
  document.addEventListener("submit", (event) => event.preventDefault());
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => pointed(event, true));
  }
  for (const kind of ["pointerout", "focusout"]) {
    document.addEventListener(kind, (event) => pointed(event, false));
  }
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
  return { light, offerReplay, stop };
})();
