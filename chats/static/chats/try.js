// The page behind "Try it": posts the question and shows the turn's events as they come.
"use strict";

const form = document.getElementById("try-form");
const answer = document.getElementById("try-answer");
const state = document.getElementById("try-state");
const thoughts = document.getElementById("try-thoughts");
const thought = document.getElementById("try-thought");

function think(text) {
  thought.textContent = text;
  thoughts.hidden = !text;
}

function show(event) {
  if (event.event === "reasoning.delta") think(thought.textContent + event.text);
  if (event.event === "text.delta") answer.textContent += event.text;
  if (event.event === "tool.started") answer.textContent += `\n[${event.name} ${event.arguments}]\n`;
  if (event.event === "tool.finished") answer.textContent += `[${event.content}]\n`;
  if (event.event === "turn.restarted") {
    answer.textContent = "";
    think("");
  }
  if (event.event.startsWith("turn.")) state.textContent = event.message && event.code
    ? `${event.event}: ${event.message}` : event.event;
}

async function ask(body) {
  const response = await fetch(window.location.href, { method: "POST", body });
  if (!response.ok) {
    state.textContent = `Refused (${response.status}): ${await response.text()}`;
    return;
  }
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
      if (data) show(JSON.parse(data.slice(6)));
    }
  }
}

form.addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  answer.textContent = "";
  think("");
  state.textContent = "waiting";
  ask(new FormData(form)).catch((error) => { state.textContent = String(error); });
});
