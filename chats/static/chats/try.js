// The conversation behind "Try it": asks, shows the turn's events as they come, and keeps what was
// said, which the next question takes along. All words are in the page (admin/chats/conversation.html).
"use strict";

(() => {
  const desk = document.getElementById("try-desk");
  const [log, form, box, ask, stop, fresh, state] = ["log", "form", "content", "ask", "stop", "new", "state"]
    .map((name) => document.getElementById(`try-${name}`));
  const words = desk.dataset;
  const callWords = [...document.querySelectorAll("#try-call-words dt")].map((each) => each.textContent);
  const TRIES = 4;
  let history = [];
  let current = null;

  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const copy = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
  const number = (value, form) => Number(value ?? 0).toLocaleString(document.documentElement.lang, form);
  const tenth = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

  function begin(question) {
    const element = copy("try-exchange");
    const find = (name) => element.querySelector(`.try-${name}`);
    find("question").textContent = question;
    log.append(element);
    return { question, find, element, texts: {}, thoughts: {}, calls: {}, seq: 0, turn: "", isOver: false, hasAnswer: false, since: performance.now() };
  }

  const join = (parts) => Object.keys(parts).sort((a, b) => a - b).map((step) => parts[step]).filter((text) => text.trim()).join("\n\n");

  function draw(exchange) {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    exchange.find("answer").textContent = join(exchange.texts);
    const thoughts = exchange.find("thoughts");
    thoughts.hidden = !join(exchange.thoughts);
    thoughts.querySelector("pre").textContent = join(exchange.thoughts);
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  function say(exchange, text, isError = false) {
    const facts = exchange.find("facts");
    facts.textContent = text;
    facts.classList.toggle("try-error", isError);
  }

  function callOf(exchange, id) {
    if (!exchange.calls[id]) {
      const item = copy("try-call");
      exchange.calls[id] = item;
      exchange.find("calls").hidden = false;
      exchange.find("calls").append(item);
      item.querySelector("summary span").textContent = callWords[0];
    }
    return exchange.calls[id];
  }

  function showCall(exchange, id, name, given) {
    const item = callOf(exchange, id);
    item.querySelector("code").textContent = name;
    item.querySelector(".try-arguments").textContent = given;
  }

  function showResult(exchange, id, content, isOk) {
    const item = callOf(exchange, id);
    item.querySelector(".try-result").textContent = content;
    item.querySelector("summary span").textContent = callWords[isOk ? 1 : 2];
  }

  function showSources(exchange, passages) {
    const box = exchange.find("sources");
    for (const passage of passages) {
      if (box.querySelector(`[data-number="${CSS.escape(passage.number)}"]`)) continue;
      const item = document.createElement("li");
      item.dataset.number = passage.number;
      const title = document.createElement("strong");
      const place = [passage.document?.name, passage.heading].filter(Boolean);
      title.textContent = `[${passage.number}] ${place.join(" › ")}`;
      const quote = document.createElement("blockquote");
      quote.textContent = passage.content ?? "";
      item.append(title, quote);
      box.querySelector("ol").append(item);
    }
    box.hidden = !box.querySelector("li");
    box.querySelector("summary span").textContent = `(${box.querySelectorAll("li").length})`;
  }

  function takeMessage(exchange, message, step) {
    if (message.role === "tool_call") showCall(exchange, message.tool_call.id, message.tool_call.name, message.tool_call.arguments);
    if (message.role === "tool") showResult(exchange, message.tool_call.id, message.content, true);
    if (message.role !== "assistant") return;
    exchange.texts[step] = message.content;
    if (message.reasoning) exchange.thoughts[step] = message.reasoning;
    showSources(exchange, message.citations ?? []);
  }

  const TAKE = {
    "turn.started": (exchange) => say(exchange, words.thinking),
    "reasoning.delta": (exchange, event) => { exchange.thoughts[event.step] = (exchange.thoughts[event.step] ?? "") + event.text; },
    "text.delta": (exchange, event) => {
      exchange.texts[event.step] = (exchange.texts[event.step] ?? "") + event.text;
      say(exchange, words.answering);
    },
    "tool.started": (exchange, event) => showCall(exchange, event.call_id, event.name, event.arguments),
    "tool.finished": (exchange, event) => showResult(exchange, event.call_id, event.content, event.ok),
    "source.added": (exchange, event) => showSources(exchange, [event.passage]),
    "message.stored": (exchange, event) => takeMessage(exchange, event.message, event.step),
    "turn.restarted": (exchange, event) => {
      delete exchange.texts[event.step];
      delete exchange.thoughts[event.step];
      say(exchange, words.restarted);
    },
    "turn.snapshot": (exchange, event) => {
      exchange.texts = {};
      exchange.thoughts = { ...event.reasoning };
      event.messages.forEach((message, place) => takeMessage(exchange, message, place - event.messages.length));
      Object.assign(exchange.texts, event.text);
    },
    "turn.completed": (exchange, event) => {
      const facts = [
        fill(words.completed, { seconds: number((performance.now() - exchange.since) / 1000, tenth) }),
        fill(words.tokens, { prompt: number(event.usage?.prompt_tokens), reply: number(event.usage?.completion_tokens) }),
      ];
      say(exchange, facts.join(" · "));
      exchange.hasAnswer = true;
    },
    "turn.incomplete": (exchange, event) => { say(exchange, `${words.incomplete}: ${event.message}`, true); exchange.hasAnswer = true; },
    "turn.failed": (exchange, event) => say(exchange, `${words.failed}: ${event.message}`, true),
    "turn.cancelled": (exchange) => { say(exchange, words.cancelled); exchange.hasAnswer = true; },
  };
  const LAST = ["turn.completed", "turn.incomplete", "turn.failed", "turn.cancelled"];

  function take(exchange, event) {
    exchange.seq = event.seq;
    exchange.turn = event.turn_id;
    TAKE[event.event]?.(exchange, event);
    exchange.isOver = LAST.includes(event.event);
    stop.hidden = exchange.isOver;
    draw(exchange);
  }

  async function read(exchange, response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      buffer += value;
      const blocks = buffer.split("\n\n");
      buffer = blocks.pop();
      for (const block of blocks) {
        const data = block.split("\n").find((line) => line.startsWith("data: "));
        if (data) take(exchange, JSON.parse(data.slice(6)));
      }
    }
  }

  // Why a question was not taken, in words: of the server where it has some.
  async function refusal(response) {
    if (response.redirected || [401, 403].includes(response.status)) return words.signedOut;
    const { error } = await response.json().catch(() => ({}));
    const said = Object.values(error?.fields ?? {}).flat();
    return `${words.refused}: ${said.join(" ") || error?.message || response.status}`;
  }

  const isStream = (response) => response.ok && (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");

  async function follow(exchange) {
    for (let round = 1; !exchange.isOver && exchange.turn && round <= TRIES; round += 1) {
      say(exchange, words.lost, true);
      await pause(round * 500);
      const response = await fetch(`${words.ask}${exchange.turn}/events/`, { headers: { "Last-Event-ID": String(exchange.seq) } }).catch(() => null);
      if (response && isStream(response)) await read(exchange, response).catch(() => {});
    }
    if (!exchange.isOver) say(exchange, words.gone, true);
  }

  async function answer(exchange) {
    const body = new FormData(form);
    body.set("content", exchange.question);
    body.set("history", JSON.stringify(history));
    const response = await fetch(words.ask, { method: "POST", body }).catch(() => null);
    if (!response || !isStream(response)) {
      exchange.element.remove();
      box.value ||= exchange.question;
      state.textContent = response ? await refusal(response) : words.unreachable;
      state.classList.add("try-error");
      return;
    }
    await read(exchange, response).catch(() => {});
    await follow(exchange);
    end(exchange);
  }

  function end(exchange) {
    if (current !== exchange) return; // another conversation has begun meanwhile
    const said = join(exchange.texts);
    if (exchange.hasAnswer && said) {
      history.push({ role: "human", content: exchange.question }, { role: "assistant", content: said });
    } else if (!box.value) {
      box.value = exchange.question;
    }
    const details = exchange.find("manifest");
    details.hidden = !exchange.turn;
    details.querySelector("a").href = `${words.turns}${exchange.turn}/change/`;
    details.addEventListener("toggle", () => showPictures(exchange, details.querySelector("div")), { once: true });
  }

  async function showPictures(exchange, place) {
    const response = await fetch(`${words.ask}${exchange.turn}/`).catch(() => null);
    if (response?.ok && !response.redirected) place.innerHTML = await response.text();
    else place.textContent = words.noPictures;
    log.scrollTop = place.parentElement.offsetTop;
  }

  async function submit() {
    const question = box.value.trim();
    if (!question || current) return;
    state.textContent = "";
    state.classList.remove("try-error");
    const exchange = current = begin(question);
    box.value = "";
    box.focus();
    ask.disabled = true;
    fresh.hidden = false;
    say(exchange, words.waiting);
    log.scrollTop = log.scrollHeight;
    try {
      await answer(exchange);
    } finally {
      if (current === exchange) {
        current = null;
        ask.disabled = false;
        stop.hidden = true;
      }
      fresh.hidden = !log.childElementCount;
    }
  }

  function halt(exchange) {
    const body = new FormData(form);
    return fetch(`${words.ask}${exchange.turn}/stop/`, { method: "POST", body }).catch(() => null);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  stop.addEventListener("click", () => current && halt(current));
  fresh.addEventListener("click", () => {
    if (current?.turn) halt(current);
    current = null;
    history = [];
    log.replaceChildren();
    ask.disabled = false;
    stop.hidden = true;
    fresh.hidden = true;
    state.textContent = "";
    box.focus();
  });
})();
