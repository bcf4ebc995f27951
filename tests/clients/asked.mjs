// What the clients for Node ask, and how they look at what they get.
export const markers = JSON.parse(process.env.MARKERS);
// The tool of these clients, and what it answers.
export const call = {
  description: "The weather there.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
export const rain = (asked) => `Rain in ${asked.city} for ${process.env.CLIENT}`;

// What each client does wrong, by `ask(content, model, more, key)`: with options or another key.
export const wrongly = (ask) => ({
  no_model: () => ask("x", "absent"),
  bad_key: () => ask("x", "fake-model", {}, "amb_live_wrong"),
  not_allowed: () => ask("x", "fake-model", {}, process.env.AMBER_OTHER_KEY),
  bad_request: () => ask("x", "fake-model", { temperature: 9 }),
  too_long: () => ask("x", "fake-context-too-long"),
  busy: () => ask("x", "fake-429"),
  broken: () => ask("x", "fake-500"),
});

// How each of these failures looks to the client.
export async function failures(acts, kind) {
  const seen = {};
  for (const [name, act] of Object.entries(acts)) seen[name] = await attempt(act, kind);
  return seen;
}

async function attempt(act, kind) {
  try {
    await act();
  } catch (error) {
    return kind(error);
  }
  return null;
}

// Reads one piece of the stream that `open` gives, then aborts the request.
export async function stopAfterFirst(open) {
  const abort = new AbortController();
  for await (const _ of await open(abort.signal)) {
    abort.abort();
    break;
  }
}
