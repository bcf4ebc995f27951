// Vercel's AI SDK with its provider for OpenAI's form; prints what it saw as one JSON object.
import { createRequire } from "node:module";
import { attempt, call, rain, markers, stopAfterFirst } from "./asked.mjs";

const require = createRequire(`${process.env.CLIENTS_NODE}/`);
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { embed, generateText, jsonSchema, stepCountIs, streamText, tool } = require("ai");

const baseURL = process.env.AMBER_URL;
const at = (apiKey) => createOpenAICompatible({ name: "amber", baseURL, apiKey });
const amber = at(process.env.AMBER_KEY);
const ask = (prompt, model = amber("fake-model"), more = {}) =>
  generateText({ model, prompt, maxRetries: 0, ...more });

const seen = {};
seen.whole = (await ask(markers.words)).text;
const pieces = [];
const stream = streamText({ model: amber("fake-model"), prompt: markers.words, maxRetries: 0 });
for await (const piece of stream.textStream) pieces.push(piece);
seen.streamed = pieces.join("");
seen.pieces = pieces.length;

const weather = tool({
  description: call.description,
  inputSchema: jsonSchema(call.parameters),
  execute: async (asked) => rain(asked),
});
const rounds = { tools: { weather }, stopWhen: stepCountIs(3) };
seen.after_call = (await ask(markers.call, amber("fake-model"), rounds)).text;

const model = amber.textEmbeddingModel("fake-embedding");
seen.dimensions = (await embed({ model, value: "amber" })).embedding.length;

const kind = (error) => [error.name, error.statusCode];
seen.errors = {
  no_model: await attempt(() => ask("x", amber("absent")), kind),
  bad_key: await attempt(() => ask("x", at("amb_live_wrong")("fake-model")), kind),
  busy: await attempt(() => ask("x", amber("fake-429")), kind),
};

await stopAfterFirst((abortSignal) =>
  streamText({ model: amber("fake-model"), prompt: markers.slow, abortSignal }).textStream,
);
console.log(JSON.stringify(seen));
