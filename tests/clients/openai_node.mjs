// OpenAI's own client for Node against /v1; prints what it saw as one JSON object.
import { createRequire } from "node:module";
import { call, failures, markers, rain, stopAfterFirst, wrongly } from "./asked.mjs";

const OpenAI = createRequire(`${process.env.CLIENTS_NODE}/`)("openai");
const at = (apiKey) => new OpenAI({ baseURL: process.env.AMBER_URL, apiKey, maxRetries: 0 });
const client = at(process.env.AMBER_KEY);
const ask = (content, model = "fake-model", more = {}, key = "") =>
  (key ? at(key) : client).chat.completions.create({
    model,
    messages: [].concat(content).map((said) => (said.role ? said : { role: "user", content: said })),
    ...more,
  });

const seen = { models: [] };
for await (const model of client.models.list()) seen.models.push(model.id);

seen.whole = (await ask(markers.words)).choices[0].message.content;
const pieces = [];
for await (const chunk of await ask(markers.pieces, "fake-model", { stream: true })) {
  if (chunk.choices[0]?.delta.content) pieces.push(chunk.choices[0].delta.content);
}
seen.streamed = pieces.join("");
seen.pieces = pieces.length;

const question = { role: "user", content: markers.call };
const tools = [{ type: "function", function: { name: "weather", ...call } }];
const said = (await ask(question, "fake-model", { tools })).choices[0].message;
const [{ id, function: called }] = said.tool_calls;
const result = { role: "tool", tool_call_id: id, content: rain(JSON.parse(called.arguments)) };
const last = await ask([question, said, result], "fake-model", { tools });
seen.after_call = last.choices[0].message.content;

const image = [
  { type: "text", text: "What is it?" },
  { type: "image_url", image_url: { url: markers.image } },
];
const looked = await ask({ role: "user", content: image }, "fake-vision");
seen.image = looked.choices[0].message.content;

const response = await client.responses.create({ model: "fake-model", input: markers.words });
seen.response = response.output_text;
const asked = [];
for await (const item of client.responses.inputItems.list(response.id)) asked.push(item.content[0].text);
seen.input_items = asked;
const told = await client.embeddings.create({ model: "fake-embedding", input: ["amber"] });
seen.dimensions = told.data[0].embedding.length;

seen.errors = await failures(wrongly(ask), (error) => [error.constructor.name, error.status]);

await stopAfterFirst((signal) => client.chat.completions.create(
  { model: "fake-model", stream: true, messages: [{ role: "user", content: markers.slow }] },
  { signal },
));
console.log(JSON.stringify(seen));
