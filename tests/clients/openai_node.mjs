// OpenAI's own client for Node against /v1; prints what it saw as one JSON object.
import { createRequire } from "node:module";
import { attempt, call, rain, markers, stopAfterFirst } from "./asked.mjs";

const OpenAI = createRequire(`${process.env.CLIENTS_NODE}/`)("openai");
const [baseURL, apiKey] = [process.env.AMBER_URL, process.env.AMBER_KEY];
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const ask = (content, more = {}, by = client) =>
  by.chat.completions.create({
    model: "fake-model",
    messages: [].concat(content).map((said) => (said.role ? said : { role: "user", content: said })),
    ...more,
  });

const seen = { models: [] };
for await (const model of client.models.list()) seen.models.push(model.id);

seen.whole = (await ask(markers.words)).choices[0].message.content;
const pieces = [];
for await (const chunk of await ask(markers.words, { stream: true })) {
  if (chunk.choices[0]?.delta.content) pieces.push(chunk.choices[0].delta.content);
}
seen.streamed = pieces.join("");
seen.pieces = pieces.length;

const question = { role: "user", content: markers.call };
const tools = [{ type: "function", function: { name: "weather", ...call } }];
const said = (await ask(question, { tools })).choices[0].message;
const [{ id, function: called }] = said.tool_calls;
const result = { role: "tool", tool_call_id: id, content: rain(JSON.parse(called.arguments)) };
seen.after_call = (await ask([question, said, result], { tools })).choices[0].message.content;

const response = await client.responses.create({ model: "fake-model", input: markers.words });
seen.response = response.output_text;
const told = await client.embeddings.create({ model: "fake-embedding", input: ["amber"] });
seen.dimensions = told.data[0].embedding.length;

const stranger = new OpenAI({ baseURL, apiKey: "amb_live_wrong", maxRetries: 0 });
const kind = (error) => [error.constructor.name, error.status];
seen.errors = {
  no_model: await attempt(() => ask("x", { model: "absent" }), kind),
  bad_key: await attempt(() => ask("x", {}, stranger), kind),
  busy: await attempt(() => ask("x", { model: "fake-429" }), kind),
};

await stopAfterFirst((signal) => client.chat.completions.create(
  { model: "fake-model", stream: true, messages: [{ role: "user", content: markers.slow }] },
  { signal },
));
console.log(JSON.stringify(seen));
