// What the clients for Node ask, and how they look at what they get.
export const markers = JSON.parse(process.env.MARKERS);
// The tool of these clients, and what it answers.
export const call = {
  description: "The weather there.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
export const rain = (asked) => `Rain in ${asked.city} for ${process.env.CLIENT}`;

export async function attempt(act, kind) {
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
