// LangChain in a tool loop, as an application runs it.
//
// Usage: langchain.mjs DIALECT URL MODEL PROMPT MODE, the key in OPENAI_API_KEY; `invoke` in the mode
// `plain`, `stream` in the mode `stream`. Prints what the application sees, without what differs
// from run to run: every turn with its calls, text and usage.

import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";

const [dialect, url, model, prompt, mode] = process.argv.slice(2);
const apiKey = process.env.OPENAI_API_KEY;
const configuration = { baseURL: `${url}/v1` };

const chat = {
  chat: () => new ChatOpenAI({ model, apiKey, configuration, useResponsesApi: false }),
  responses: () => new ChatOpenAI({ model, apiKey, configuration, useResponsesApi: true }),
  messages: () => new ChatAnthropic({ model, apiKey, anthropicApiUrl: url, maxTokens: 4000 }),
  gemini: () => new ChatGoogleGenerativeAI({ model, apiKey, baseUrl: url }),
}[dialect]();

const schema = {
  type: "object",
  properties: { text: { type: "string" } },
  required: ["text"],
  additionalProperties: false,
};
const echo = tool(async ({ text }) => text, { name: "echo_text", description: "Echo.", schema });
const bound = chat.bindTools([echo]);

// LangChain reads the input tokens of an Anthropic stream from its first event and adds the output
// tokens of the first and the last. OpenAI tells neither before the end, so a converted stream
// cannot have them at its start: here they are left out.
const isUsageTold = !(dialect === "messages" && mode === "stream");

async function streamed(messages) {
  let message;
  for await (const chunk of await bound.stream(messages)) {
    message = message === undefined ? chunk : message.concat(chunk);
  }
  return message;
}

async function loop(asked) {
  const messages = [new HumanMessage(prompt)];
  const turns = [];
  for (let turn = 0; turn < 6; turn += 1) {
    const message = await asked(messages);
    messages.push(message);
    const usage = message.usage_metadata;
    turns.push({
      text: message.text,
      calls: message.tool_calls.map((call) => [call.name, call.args]),
      usage: isUsageTold ? [usage?.input_tokens, usage?.output_tokens] : null,
    });
    if (message.tool_calls.length === 0) return turns;
    for (const call of message.tool_calls) {
      const content = await echo.invoke(call.args);
      messages.push(new ToolMessage({ content, tool_call_id: call.id, name: call.name }));
    }
  }
  throw new Error("the loop does not end");
}

const ask = mode === "plain" ? (messages) => bound.invoke(messages) : streamed;
console.log(JSON.stringify({ steps: await loop(ask) }));
