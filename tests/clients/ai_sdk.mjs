// Vercel's AI SDK against /v1, with its provider for OpenAI's form and with that for OpenAI itself, which
// speaks in responses; prints what it saw as one JSON object.
import { createRequire } from "node:module";
import { call, failures, markers, rain, stopAfterFirst, wrongly } from "./asked.mjs";

const require = createRequire(`${process.env.CLIENTS_NODE}/`);
const { createOpenAI } = require("@ai-sdk/openai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { embed, generateText, jsonSchema, stepCountIs, streamText, tool } = require("ai");

const [baseURL, apiKey] = [process.env.AMBER_URL, process.env.AMBER_KEY];
const at = (key) => createOpenAICompatible({ name: "amber", baseURL, apiKey: key });
const amber = at(apiKey);
const ask = (prompt, model = "fake-model", more = {}, key = "") =>
  generateText({ model: (key ? at(key) : amber)(model), prompt, maxRetries: 0, ...more });

const seen = {};
seen.whole = (await ask(markers.words)).text;
const pieces = [];
const stream = streamText({ model: amber("fake-model"), prompt: markers.pieces, maxRetries: 0 });
for await (const piece of stream.textStream) pieces.push(piece);
seen.streamed = pieces.join("");
seen.pieces = pieces.length;

const weather = tool({
  description: call.description,
  inputSchema: jsonSchema(call.parameters),
  execute: async (asked) => rain(asked),
});
const rounds = { tools: { weather }, stopWhen: stepCountIs(3) };
seen.after_call = (await ask(markers.call, "fake-model", rounds)).text;

const image = [
  { type: "text", text: "What is it?" },
  { type: "image", image: markers.image },
];
const messages = [{ role: "user", content: image }];
seen.image = (await generateText({ model: amber("fake-vision"), messages, maxRetries: 0 })).text;

const responding = createOpenAI({ baseURL, apiKey })("fake-model");
const responses = streamText({ model: responding, prompt: markers.words, maxRetries: 0 });
seen.response = await responses.text;

const model = amber.textEmbeddingModel("fake-embedding");
seen.dimensions = (await embed({ model, value: "amber" })).embedding.length;

seen.errors = await failures(wrongly(ask), (error) => [error.name, error.statusCode]);

await stopAfterFirst((abortSignal) =>
  streamText({ model: amber("fake-model"), prompt: markers.slow, abortSignal }).textStream,
);
console.log(JSON.stringify(seen));
