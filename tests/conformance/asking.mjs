// The tools, and the prompt, that ask their client for something before they answer.
//
// Each is written once: in the stateless era what is asked is the result, and the client calls
// again with the answers; in the era of sessions the SDK sends the questions and enters the tool
// again itself.

import {
  createRequestStateCodec, inputRequired, inputResponse,
} from "@modelcontextprotocol/server";
import { saying, tool } from "./tools.mjs";

// What comes back with the answers was in the client's hands: it is signed.
export const STATE = createRequestStateCodec({
  key: "a key that only this fixture has, and no user",
});

const object = (properties, required = Object.keys(properties)) =>
  ({ type: "object", properties, required });
const form = (message, properties, required) =>
  inputRequired.elicit({ message, requestedSchema: object(properties, required) });
const sample = (words, maxTokens) => inputRequired.createMessage({
  messages: [{ role: "user", content: { type: "text", text: words } }], maxTokens,
});

const NAME = { name: { type: "string" } };
const OK = { ok: { type: "boolean" } };

// Calls `done` with the answers once all of them are there, and asks until then.
async function ask(ctx, requests, done, state) {
  const answers = ctx.mcpReq.inputResponses;
  const views = Object.fromEntries(
    Object.keys(requests).map((key) => [key, inputResponse(answers, key)]),
  );
  if (Object.values(views).every(({ kind }) => kind !== "missing")) return done(views);
  return inputRequired({
    inputRequests: requests,
    ...(state && { requestState: await STATE.mint(state) }),
  });
}

const sampled = ({ result }) => result.content?.text ?? JSON.stringify(result.content);
const chosen = ({ action, content }) =>
  saying(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);

// Fields with a default of every primitive type.
const DEFAULTS = {
  name: { type: "string", description: "User name", default: "John Doe" },
  age: { type: "integer", description: "User age", default: 30 },
  score: { type: "number", description: "User score", default: 95.5 },
  status: {
    type: "string", description: "User status", enum: ["active", "inactive", "pending"],
    default: "active",
  },
  verified: { type: "boolean", description: "Whether it was verified", default: true },
};

const titled = (words) => ["First", "Second", "Third"].map((it, n) =>
  ({ const: `value${n + 1}`, title: `${it} ${words}` }));

// The five ways to let a user choose.
const CHOICES = {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: { type: "string", oneOf: titled("Option") },
  legacyEnum: {
    type: "string", enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: {
    type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] },
  },
  titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
};

// By the name of the tool: what it says of itself, its schema, and how it answers.
const QUESTIONS = {
  test_sampling: ["Asks a model",
    { properties: { prompt: { type: "string" } }, required: ["prompt"] },
    ({ prompt }, ctx) => ask(ctx, { answer: sample(prompt, 100) },
      ({ answer }) => saying(`LLM response: ${sampled(answer)}`))],
  test_elicitation: ["Asks a user",
    { properties: { message: { type: "string" } }, required: ["message"] },
    ({ message }, ctx) => ask(ctx, {
      answer: form(message, {
        username: { type: "string", description: "User's response" },
        email: { type: "string", description: "User's email address" },
      }),
    }, ({ answer }) => saying(
      `User response: <action: ${answer.action}, content: ${JSON.stringify(answer.content)}>`,
    ))],
  test_elicitation_sep1034_defaults: ["Asks a user, with defaults", {},
    (_, ctx) => ask(ctx, { answer: form("Who are you?", DEFAULTS, []) },
      ({ answer }) => chosen(answer))],
  test_elicitation_sep1330_enums: ["Asks a user to choose", {},
    (_, ctx) => ask(ctx, { answer: form("Choose.", CHOICES, []) },
      ({ answer }) => chosen(answer))],
  test_streaming_elicitation: ["Asks a user, in the middle of its work", {},
    (_, ctx) => ask(ctx, { answer: form("Shall it go on?", OK) }, ({ answer }) => chosen(answer))],
  test_input_required_result_elicitation: ["Asks for a name", {},
    (_, ctx) => ask(ctx, { user_name: form("What is your name?", NAME) },
      ({ user_name: it }) => saying(`Hello, ${it.content?.name ?? "stranger"}!`))],
  test_input_required_result_sampling: ["Asks for a capital", {},
    (_, ctx) => ask(ctx, { capital_question: sample("What is the capital of France?", 100) },
      ({ capital_question: it }) => saying(sampled(it)))],
  test_input_required_result_list_roots: ["Asks for roots", {},
    (_, ctx) => ask(ctx, { client_roots: inputRequired.listRoots() },
      ({ client_roots: it }) => saying(it.roots.map(({ uri }) => uri).join(" ")))],
  test_input_required_result_request_state: ["Asks, and has its state carried", {},
    (_, ctx) => ask(ctx, { confirm: form("Please confirm", OK) },
      () => saying(ctx.mcpReq.requestState()?.round === 1 ? "state-ok" : "state-missing"),
      { round: 1 })],
  test_input_required_result_tampered_state: ["Asks, and notices a forged state", {},
    (_, ctx) => ask(ctx, { confirm: form("Please confirm", OK) },
      () => saying("The state is genuine."), { round: 1 })],
  test_input_required_result_multiple_inputs: ["Asks three things at once", {},
    (_, ctx) => ask(ctx, {
      user_name: form("What is your name?", NAME),
      greeting: sample("Generate a greeting", 50),
      client_roots: inputRequired.listRoots(),
    }, () => saying("All three were answered."), { round: 1 })],
  test_input_required_result_multi_round: ["Asks twice", {}, twice],
  test_input_required_result_capabilities: ["Asks for what the client has", {}, whatIsThere],
  // The SDK refuses to ask a client for what it did not declare.
  test_missing_capability: ["Needs a client with a model", {},
    (_, ctx) => ask(ctx, { answer: sample("Say something.", 20) },
      ({ answer }) => saying(sampled(answer)))],
};

// The second question depends on the first answer, which the state carries.
async function twice(_, ctx) {
  const state = ctx.mcpReq.requestState();
  if (state?.name === undefined) {
    const step1 = form("Step 1: What is your name?", NAME);
    const first = inputResponse(ctx.mcpReq.inputResponses, "step1");
    if (state?.round !== 1 || first.kind !== "elicit") {
      const requestState = await STATE.mint({ round: 1 });
      return inputRequired({ inputRequests: { step1 }, requestState });
    }
    const step2 = form("Step 2: What is your favorite color?", { color: { type: "string" } });
    const requestState = await STATE.mint({ round: 2, name: first.content?.name ?? "stranger" });
    return inputRequired({ inputRequests: { step2 }, requestState });
  }
  const second = inputResponse(ctx.mcpReq.inputResponses, "step2");
  return saying(`${state.name} likes ${second.content?.color ?? "no color"}.`);
}

async function whatIsThere(_, ctx) {
  const has = capabilities(ctx) ?? {};
  const requests = {
    ...(has.sampling && { model: sample("Say something.", 20) }),
    ...(has.elicitation && { user: form("Say something.", NAME) }),
    ...(has.roots && { roots: inputRequired.listRoots() }),
  };
  if (Object.keys(requests).length === 0) return saying("The client can be asked for nothing.");
  return ask(ctx, requests, () => saying("Everything was answered."));
}

// What the client of this request can be asked for; the era of sessions tells it once.
function capabilities(ctx) {
  return ctx.mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"]
    ?? ctx.declaredAtStart;
}

export function registerAsking(server) {
  for (const [name, [description, schema, answer]] of Object.entries(QUESTIONS)) {
    tool(server, name, description, schema, (given, ctx) =>
      answer(given, { ...ctx, declaredAtStart: server.server.getClientCapabilities() }));
  }
  server.registerPrompt("test_input_required_result_prompt", {
    description: "Asks for its context",
  }, (ctx) => ask(ctx, {
    user_context: form("What context should the prompt use?", { context: { type: "string" } }),
  }, ({ user_context: it }) => ({
    messages: [{
      role: "user", content: { type: "text", text: `Context: ${it.content?.context ?? "none"}` },
    }],
  })));
}
