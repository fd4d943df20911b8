"use strict";
// The chat. All that a person, a model or a picture service wrote is put in as text.
{
  const LANGUAGES = ["vi", "en"];
  const LONGEST_PAUSE = 15000; // ms between two tries to connect
  const SHOWN = 600; // characters of what a tool returned
  const $ = (id) => document.getElementById(id);

  // -- what the browser keeps; where it may not, this page does --------------------------------

  const storage = (open) => {
    const here = new Map();
    const attempt = (work) => {
      try {
        return work(open());
      } catch {
        return null;
      }
    };
    return {
      get: (name) => attempt((kept) => kept.getItem(name)) ?? here.get(name) ?? null,
      set(name, value) {
        here.set(name, value);
        attempt((kept) => kept.setItem(name, value));
      },
      drop(name) {
        here.delete(name);
        attempt((kept) => kept.removeItem(name));
      },
    };
  };
  const browser = storage(() => localStorage);
  const tab = storage(() => sessionStorage);

  // Whoever knows it can read the conversations: nobody guesses it. Not `randomUUID`, which a
  // browser has for https and for this machine only.
  const newId = () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const user = browser.get("medagen-user") ?? newId();
  browser.set("medagen-user", user);

  // -- words -----------------------------------------------------------------------------------

  let words = {};
  let language = browser.get("medagen-language") ?? (navigator.languages ?? []).map((name) => name.slice(0, 2)).find((name) => LANGUAGES.includes(name)) ?? "en";

  const t = (key) => words[key]?.[language] ?? key.slice(key.indexOf(".") + 1).replaceAll("_", " ");
  const translate = (root) => {
    for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
    for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
  };
  const make = (name, kind, ...content) => {
    const element = document.createElement(name);
    if (kind) element.className = kind;
    element.append(...content);
    return element;
  };
  const say = (name, key, kind) => {
    const element = make(name, kind, t(key));
    element.dataset.t = key;
    return element;
  };
  const icon = (name) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    use.setAttribute("href", `#i-${name}`);
    svg.classList.add("icon");
    svg.setAttribute("aria-hidden", "true");
    svg.append(use);
    return svg;
  };
  const quote = (name, text, lang, kind = "said") => {
    const element = make(name, kind, text);
    if (lang) element.lang = lang;
    return element;
  };
  const speak = (chosen) => {
    language = chosen;
    $("language").value = document.documentElement.lang = chosen;
    translate(document);
  };
  const tell = (id, key) => {
    if ($(id).firstElementChild?.dataset.t !== key) $(id).replaceChildren(...(key ? [say("span", key)] : []));
  };

  const beginAnew = () => {
    tab.drop("medagen-session");
    tab.drop("medagen-unsent");
    location.reload();
  };

  // -- what is shown -----------------------------------------------------------------------------

  // The banner stays while the emergency stands: once read, it shrinks to what to do.
  const shrink = (isRead) => {
    const banner = $("alert").firstElementChild;
    if (!banner) return;
    banner.classList.toggle("read", isRead);
    const fold = banner.querySelector("button");
    fold.setAttribute("aria-expanded", String(!isRead));
    fold.dataset.tLabel = isRead ? "alert.more" : "alert.less";
    fold.setAttribute("aria-label", t(fold.dataset.tLabel));
  };
  const warn = () => {
    if ($("alert").childElementCount) return;
    const call = make("a", "", icon("phone"), say("span", "alert.call"));
    call.href = "tel:115";
    const fold = make("button", "", icon("fold"));
    fold.type = "button";
    fold.onclick = () => shrink(!$("alert").firstElementChild.classList.contains("read"));
    const title = make("strong", "", icon("emergency"), say("span", "alert.title"));
    $("alert").append(make("div", "", title, call, fold, say("p", "alert.or")));
    shrink(false);
  };
  const levelOf = (level) => make("p", `level ${level}`, make("b", "", icon(level), say("span", `level.${level}`)), say("span", `when.${level}`));
  const section = (key, ...content) => [say("h3", key), ...content];
  const listOf = (items) => make("ul", "", ...items.map((item) => make("li", "", ...[item].flat())));

  const wrote = (words) => [say("span", "wrote"), ": “", quote("bdi", words), "”"];
  const ruleOf = (fired) => [
    say("span", `level.${fired.level}`), ": ", say("span", `rule.${fired.rule}`), " ",
    make("span", "soft", "(", ...wrote(fired.because), "; ", fired.rule, "; ", say("span", "source"), ": ", fired.source, ")"),
  ];
  const flagOf = (flag, rules) => {
    const because = rules.find((fired) => fired.flag === flag)?.because;
    return [say("span", `flag.${flag}`), ...(because ? [" ", make("span", "soft", "(", ...wrote(because), ")")] : [])];
  };
  // What the model says stands apart: none of it is checked against what the user wrote.
  const modelOf = (result, lang) => {
    const parts = [quote("p", result.symptom_summary, lang)];
    if (result.model_flags.length) parts.push(...section("model.flags", listOf(result.model_flags.map((flag) => say("span", `flag.${flag}`)))));
    if (result.suspected_conditions.length) parts.push(...section("conditions", listOf(result.suspected_conditions.map((name) => quote("span", name, lang)))));
    if (result.model_advice) parts.push(...section("model.advice", quote("p", result.model_advice, lang)));
    return make("section", "model", say("h3", "model"), ...parts);
  };
  const pictureOf = ([tool, found]) => {
    const name = [say("span", `tool.${tool}`), ": "];
    if (found.error) return [...name, say("span", "picture.failed"), " ", make("span", "soft", found.error)];
    if (!found.predictions.length) return [...name, say("span", "picture.none")];
    return [...name, found.predictions.map(({ label, probability }) => `${label} ${Math.round(100 * probability)} %`).join(", ")];
  };

  const answer = (result) => {
    const lang = result.language;
    if (result.triage_level === "emergency") warn();
    const parts = [levelOf(result.triage_level)];
    if (result.earlier_words) {
      const anew = say("button", "earlier.anew");
      anew.type = "button";
      anew.onclick = beginAnew;
      parts.push(make("p", "note", say("span", "earlier"), " “", quote("bdi", result.earlier_words), "”. ", anew));
    }
    parts.push(quote("p", result.recommendation, lang, "advice said"));
    if (result.fallback !== null) parts.push(make("p", "note", say("span", "fallback"), " ", make("span", "soft", result.fallback)));
    if (result.red_flags.length) parts.push(...section("flags", listOf(result.red_flags.map((flag) => flagOf(flag, result.rules)))));
    if (result.cv_findings) parts.push(...section("pictures", listOf(Object.entries(result.cv_findings).map(pictureOf))));
    if (result.rules.length) parts.push(make("details", "", say("summary", "why"), listOf(result.rules.map(ruleOf))));
    if (result.guidelines.length) parts.push(...section("guidelines", make("p", "soft", result.guidelines.join(", "))));
    if (result.fallback === null || result.model_flags.length) parts.push(modelOf(result, lang));
    return parts;
  };

  const show = (role, ...content) => {
    $("welcome").hidden = true;
    $("anew").hidden = false;
    const article = make("article", role, say("h2", role === "user" ? "you" : "assistant"), ...content);
    $("log").append(article);
    article.scrollIntoView({ block: "nearest" });
    return article;
  };

  const link = () => {
    const session = tab.get("medagen-session");
    $("report").hidden = !session;
    if (session) $("report").href = `/api/reports/${encodeURIComponent(session)}?user_id=${user}`;
  };

  const keep = (session) => {
    tab.set("medagen-session", session);
    tab.drop("medagen-unsent");
    link();
  };

  // -- a turn ------------------------------------------------------------------------------------

  let socket, turn, tries = 0;
  let isHasty = false; // there was something to send before there was a connection

  const begin = (text, image) => {
    show("user", quote("p", [text, image].filter(Boolean).join("\n")));
    const list = make("ol");
    const steps = make("details", "steps", say("summary", "steps"), list);
    steps.setAttribute("aria-live", "off"); // the answer is read out, not the way to it
    steps.open = true;
    const working = say("p", "working", "soft");
    turn = { article: show("assistant", working, steps), list, steps, working, text, image };
    tab.set("medagen-unsent", text); // until the server has stored it
  };
  const end = (...parts) => {
    turn.working.remove();
    turn.steps.open = false;
    turn.steps.hidden = !turn.list.childElementCount;
    turn.article.querySelector("h2").after(...parts);
    turn.article.scrollIntoView({ block: "nearest" });
    turn = undefined;
  };
  const giveBack = () => {
    if (!$("text").value && !$("image").value) [$("text").value, $("image").value] = [turn.text, turn.image];
  };

  const brief = (value) => {
    const text = JSON.stringify(value);
    return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  };
  const step = (kind, ...content) => turn.list.append(make("li", "", say("b", `step.${kind}`), ": ", ...content));

  const does = {
    thought: ({ text }) => step("thought", quote("span", text)),
    action_start: ({ tool, input }) => step("action_start", say("span", `tool.${tool}`), " ", quote("span", brief(input))),
    observation({ tool, output, session_id }) {
      if (session_id) keep(session_id);
      const isRules = tool === "triage_rules" && output.triage_level;
      if (isRules && output.triage_level === "emergency") warn();
      const told = isRules ? [say("span", `level.${output.triage_level}`), ". ", quote("span", output.reasoning ?? "")] : [quote("span", brief(output))];
      step("observation", say("span", `tool.${tool}`), ": ", ...told);
    },
    final_answer({ result }) {
      keep(result.session_id);
      end(...answer(result));
    },
    error({ message }) {
      giveBack();
      end(make("p", "failed", say("span", "refused"), " ", quote("span", message, "en")));
    },
  };

  const connect = () => {
    const opened = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/ws/chat`);
    socket = opened;
    opened.onopen = () => {
      tries = 0;
      tell("state");
      if (isHasty) send();
    };
    opened.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (turn && Object.hasOwn(does, message.type)) does[message.type](message);
    };
    opened.onclose = () => {
      if (turn) {
        giveBack();
        end(say("p", "cut", "failed"));
      }
      tell("state", "gone");
      setTimeout(connect, Math.min(LONGEST_PAUSE, 500 * 2 ** tries++));
    };
  };

  const send = () => {
    const text = $("text").value.trim();
    const image = $("image").value.trim();
    const isOpen = socket?.readyState === WebSocket.OPEN;
    const wrong = turn ? "busy" : !text && !image ? "empty" : image && !/^https:\/\/./i.test(image) ? "image" : !isOpen && tries ? "offline" : "";
    tell("wrong", wrong && `wrong.${wrong}`);
    if (wrong) {
      (wrong === "image" ? $("image") : $("text")).focus();
      return;
    }
    isHasty = !isOpen;
    if (isHasty) {
      tell("state", "connecting");
      return;
    }
    const session = tab.get("medagen-session");
    socket.send(JSON.stringify({ text, image_url: image || null, user_id: user, session_id: session || null }));
    shrink(true); // who writes on has read it
    begin(text, image);
    $("text").value = $("image").value = "";
    $("picture").open = false;
    $("text").focus();
  };

  const restore = async () => {
    const session = tab.get("medagen-session");
    if (!session) return;
    const reply = await fetch(`/api/conversations/${encodeURIComponent(session)}?user_id=${user}`);
    if (reply.status === 404) tab.drop("medagen-session");
    if (!reply.ok) return;
    for (const { role, text, result } of (await reply.json()).entries) show(role, ...(result ? answer(result) : [quote("p", text)]));
    link();
  };

  // -- the beginning -----------------------------------------------------------------------------

  $("form").onsubmit = (event) => {
    event.preventDefault();
    send();
  };
  $("text").onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  $("language").onchange = () => {
    browser.set("medagen-language", $("language").value);
    speak($("language").value);
  };
  $("anew").onclick = beginAnew;
  $("welcome").onclick = (event) => {
    if (!event.target.matches("button")) return;
    $("text").value = event.target.textContent;
    $("text").focus();
  };

  const start = async () => {
    try {
      words = await (await fetch("/page/words.json")).json();
      speak(language);
      await restore();
      $("text").value ||= tab.get("medagen-unsent") ?? "";
    } catch {
      $("state").textContent = "Máy chủ không trả lời. Nếu khẩn cấp, hãy gọi 115. – The server does not answer. If it is urgent call 115 (Vietnam) or your local emergency number.";
      setTimeout(start, LONGEST_PAUSE / 5);
      return;
    }
    $("state").replaceChildren();
    connect();
  };
  start();
}
