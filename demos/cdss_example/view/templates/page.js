"use strict";
// Shows what the server tells of the cases. All that a model or a person wrote is put in as text.
{
  const $ = (id) => document.getElementById(id);
  let section, running, previous;

  const make = (name, text = "", kind = "") => {
    const element = document.createElement(name);
    element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const show = (text, kind) => {
    if ($("state").textContent !== text) $("state").textContent = text; // read aloud once
    $("state").className = kind;
  };
  let said = [$("state").textContent, ""]; // by the server
  const say = (text, kind = "") => {
    said = [text, kind];
    show(...said);
  };
  const node = (name) => section.querySelector(`[data-node="${name}"]`);
  const list = (into, fields) => {
    for (const [label, text] of fields) {
      const kind = text === "None reported." ? "nothing" : label;
      into.append(make("dt", label, kind), make("dd", text, kind));
    }
  };
  const rest = () => {
    for (const lit of section?.querySelectorAll(".runs-now, .lit, .now") ?? []) {
      lit.classList.remove("runs-now", "lit", "now");
    }
  };
  const turn = (run) => section.querySelector(`[data-run="${run}"]`);

  const does = {
    anew() {
      $("cases").replaceChildren();
      section = undefined;
    },
    case(message) {
      section = $("case").content.cloneNode(true).querySelector("section");
      section.querySelector(".asked p").textContent = message.case;
      $("cases").prepend(section);
      running = previous = undefined;
      say("the case is taken");
    },
    began({ run, node: name, name: shown }) {
      rest();
      const element = node(name);
      const runs = Number(element.dataset.runs ?? 0) + 1;
      element.dataset.runs = runs;
      element.querySelector(".runs").textContent = runs === 1 ? "1 run" : `${runs} runs`;
      element.classList.add("runs-now");
      if (previous) section.querySelector(`[data-edge="${previous}-${name}"]`)?.classList.add("lit");
      [running, previous] = [name, name];
      const article = make("article", "", "turn now");
      article.dataset.run = run;
      const title = make("h3", `${run} · ${shown} `);
      article.append(title, make("p"));
      section.querySelector(".turns").append(article);
      say(`${shown} is at work`);
    },
    said({ run, text }) {
      turn(run)?.querySelector("p").append(text);
    },
    ended({ run, node: name, failure }) {
      rest();
      node(name).classList.add("ran");
      node(name).classList.toggle("failed", failure !== "");
      if (!failure) return;
      turn(run).classList.add("failed");
      turn(run).append(make("p", `failed; the case continues without it: ${failure}`, "why"));
    },
    summary({ agents, fields, flags }) {
      const card = make("article", "", "card");
      const words = make("dl");
      list(words, fields);
      card.append(make("h3", agents.join(", ")), ...flags.map((flag) => make("p", flag, "note")), words);
      section.querySelector(".summaries .none")?.remove();
      section.querySelector(".summaries").append(card);
    },
    recommended({ fields, limit }) {
      const box = section.querySelector(".recommendation");
      list(box.querySelector("dl"), fields);
      const note = box.querySelector(".note");
      note.hidden = !limit;
      note.textContent = `Stopped by the limit of steps: the orchestrator wanted ${limit} once more.`;
      box.hidden = false;
      say("the recommendation is there");
    },
    over({ failure, exaid }) {
      rest();
      if (failure) node(running)?.classList.add("failed");
      if (failure) turn(section.querySelectorAll(".turn").length)?.classList.add("failed");
      section.querySelector(".summaries .none")?.replaceChildren(exaid === "off" ? "It is off." : "No summary.");
      if (exaid && exaid !== "off") section.querySelector(".summaries").append(make("p", `EXAID: ${exaid}`, "note"));
      say(failure ? `failed: ${failure}` : "finished", failure ? "failed" : "finished");
    },
  };

  const source = new EventSource("/events");
  source.onopen = () => show(...said);
  source.onerror = () => {
    const what = source.readyState === EventSource.CLOSED ? "load the page again" : "trying again";
    show(`${said[0]} · connection lost: ${what}`, "failed");
  };
  source.onmessage = (event) => {
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 60 && scrollY > 0;
    for (const message of JSON.parse(event.data)) does[message.is](message);
    if (atEnd) scrollTo({ top: document.documentElement.scrollHeight });
  };
  source.addEventListener("end", () => {
    source.close();
    const [text, kind] = said;
    if (!kind) rest();
    say(kind ? `${text} · the program has ended` : "stopped: the program has ended", kind || "failed");
  });
}
