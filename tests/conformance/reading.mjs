// Resources, prompts and completion.
//
// Names, uris and texts are the conformance suite's contract.

import { ResourceTemplate, fromJsonSchema } from "@modelcontextprotocol/server";
import { PNG } from "./tools.mjs";

const WORDS = ["paris", "park", "party", "test", "testing"];

const message = (content) => ({ role: "user", content });
const words = (text) => message({ type: "text", text });

// Arguments of a prompt: all are text, and needed.
function strings(descriptions) {
  const properties = Object.fromEntries(
    Object.entries(descriptions).map(([name, description]) => [
      name, { type: "string", description },
    ]),
  );
  return fromJsonSchema({ type: "object", properties, required: Object.keys(properties) });
}

function registerResources(server) {
  const TEXTS = {
    "test://static-text": ["static-text", "This is the content of the static text resource."],
    "test://watched-resource": ["watched-resource", "This resource can be watched."],
  };
  for (const [uri, [name, text]] of Object.entries(TEXTS)) {
    const about = { description: `The text of ${name}`, mimeType: "text/plain" };
    server.registerResource(name, uri, about, async () =>
      ({ contents: [{ uri, mimeType: "text/plain", text }] }));
  }
  const pixel = "test://static-binary";
  const about = { description: "A red pixel", mimeType: "image/png" };
  server.registerResource("static-binary", pixel, about, async () =>
    ({ contents: [{ uri: pixel, mimeType: "image/png", blob: PNG }] }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  const aboutData = { description: "Data by its id", mimeType: "application/json" };
  server.registerResource("template", template, aboutData, async (uri, { id }) => {
    const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri: uri.href, mimeType: "application/json", text }] };
  });
  // Who watches is not kept: nothing here changes by itself.
  server.server.setRequestHandler("resources/subscribe", async () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
}

const TWO_WORDS = strings({ arg1: "First test argument", arg2: "Second test argument" });
const ONE_URI = strings({ resourceUri: "URI of the resource to embed" });

function registerPrompts(server) {
  server.registerPrompt("test_simple_prompt", { description: "Takes nothing" }, async () =>
    ({ messages: [words("This is a simple prompt for testing.")] }));
  server.registerPrompt("test_prompt_with_arguments", {
    description: "Takes two words",
    argsSchema: TWO_WORDS,
  }, async ({ arg1, arg2 }) =>
    ({ messages: [words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }));
  server.registerPrompt("test_prompt_with_embedded_resource", {
    description: "Embeds a resource",
    argsSchema: ONE_URI,
  }, async ({ resourceUri: uri }) => {
    const text = "Embedded resource content for testing.";
    const resource = { uri, mimeType: "text/plain", text };
    const after = words("Please process the embedded resource above.");
    return { messages: [message({ type: "resource", resource }), after] };
  });
  server.registerPrompt("test_prompt_with_image", { description: "Shows an image" }, async () => {
    const image = message({ type: "image", data: PNG, mimeType: "image/png" });
    return { messages: [image, words("Please analyze the image above.")] };
  });
  server.server.setRequestHandler("completion/complete", async ({ params }) => {
    const values = WORDS.filter((word) => word.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
}

export function registerReading(server) {
  registerResources(server);
  registerPrompts(server);
}
