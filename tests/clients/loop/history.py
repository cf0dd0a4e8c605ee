"""Reads a request of each dialect as its vendor does: strictly.

A vendor refuses a history that is not whole: a call without its result, a result without its call,
thinking that it did not sign, an id that it did not give or that is too long, a field that it does
not know. A gateway that converts such a history wrongly must fail here and not go unnoticed, so
everything below is refused with a 400 in the words of a vendor.

`read(dialect, body, provider)` gives a `Request`, or raises `Refused`.
"""

import json
import re


class Refused(Exception):
    """A request that the vendor would answer with a 400."""


class Request:
    """What a request says, in no dialect."""

    def __init__(self, body):
        self.body = body
        self.prompt = ""
        # Calls and results of the history, in order: (id, name, arguments) and (id, text).
        self.calls, self.results = [], []
        # The names of the tools, with their schemas.
        self.tools = {}
        self.is_stream = False
        # Whether thinking is wanted, and whether it may be returned encrypted.
        self.thinks = False


def must(holds, sentence):
    if not holds:
        raise Refused(sentence)


def known(body, keys, where):
    for key in body:
        must(key in keys, f"{where}{key}: Extra inputs are not permitted")


def texts(content):
    """All text of a content: a string, or parts."""
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def check_pairs(request):
    """Every call has one result, and every result its call."""
    calls = [call[0] for call in request.calls]
    results = [result[0] for result in request.results]
    must(len(set(calls)) == len(calls), f"two calls have the same id: {calls}")
    must(sorted(calls) == sorted(results), f"calls {calls} and results {results} do not match")


def chat(body, provider):
    request = Request(body)
    request.is_stream = bool(body.get("stream"))
    waiting = []
    for at, message in enumerate(body["messages"]):
        role, place = message["role"], f"messages[{at}]"
        if role == "tool":
            id = message["tool_call_id"]
            must(id in waiting, f"{place}: no preceding message with tool_call_id `{id}`")
            waiting.remove(id)
            must(texts(message["content"]) != "", f"{place}.content is empty")
            request.results.append((id, texts(message["content"])))
            continue
        must(not waiting, f"{place}: tool_call_ids without a response: {waiting}")
        if role == "user":
            request.prompt += texts(message["content"])
        for call in message.get("tool_calls") or []:
            must(len(call["id"]) <= 40, f"{place}.tool_calls[].id: string too long, at most 40")
            arguments = json.loads(call["function"]["arguments"])
            request.calls.append((call["id"], call["function"]["name"], arguments))
            waiting.append(call["id"])
    must(not waiting, f"the last call has no result: {waiting}")
    for tool in body.get("tools") or []:
        must(tool["type"] == "function", f"tools: `{tool['type']}` is not a type of tool")
        function = tool["function"]
        must(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]), "tools: a bad name")
        request.tools[function["name"]] = function.get("parameters") or {}
    return request


def responses(body, provider):
    request = Request(body)
    request.is_stream = bool(body.get("stream"))
    wants = body.get("include") or []
    request.thinks = "reasoning.encrypted_content" in wants
    items = body["input"]
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    ids = {"function_call": "fc", "message": "msg", "reasoning": "rs", "custom_tool_call": "ctc"}
    for at, item in enumerate(items):
        kind, place = item.get("type", "message"), f"input[{at}]"
        if item.get("id") and kind in ids:
            start = ids[kind]
            must(item["id"].startswith(start), f"{place}.id: expected an ID that begins `{start}`")
        if kind == "message" and item["role"] == "user":
            request.prompt += texts(item["content"])
        elif kind == "function_call":
            must(len(item["call_id"]) <= 64, f"{place}.call_id: string too long, at most 64")
            arguments = json.loads(item["arguments"])
            request.calls.append((item["call_id"], item["name"], arguments))
        elif kind == "function_call_output":
            request.results.append((item["call_id"], texts(item["output"])))
        elif kind == "reasoning":
            sealed = item.get("encrypted_content")
            must(sealed is None or sealed == provider.seal, f"{place}: cannot be decrypted")
    for tool in body.get("tools") or []:
        if tool["type"] == "function":
            request.tools[tool["name"]] = tool.get("parameters") or {}
    return request


MESSAGES_FIELDS = (
    "model messages max_tokens system metadata stop_sequences stream temperature thinking tool_choice"
    " tools top_k top_p output_config service_tier container context_management mcp_servers betas"
    " diagnostics speed inference_geo"
).split()


def messages(body, provider):
    known(body, MESSAGES_FIELDS, "")
    must("max_tokens" in body, "max_tokens: Field required")
    request = Request(body)
    request.is_stream = bool(body.get("stream"))
    thinking = body.get("thinking") or {}
    request.thinks = thinking.get("type") in ("enabled", "adaptive")
    if thinking.get("type") == "enabled":
        must(1024 <= thinking["budget_tokens"] < body["max_tokens"], "thinking: a bad budget")
        must(body.get("temperature", 1) == 1, "`temperature` may only be 1 with thinking")
    waiting, last = [], None
    for at, message in enumerate(body["messages"]):
        place, role, content = f"messages.{at}", message["role"], message["content"]
        must(role in ("user", "assistant", "system"), f"{place}: a bad role")
        if role == "system":
            continue
        must(at > 0 or role == "user", "messages: first message must use the `user` role")
        must(content != [] and content != "", f"{place}: content must be non-empty")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if waiting:
            first = [block.get("tool_use_id") for block in blocks[: len(waiting)]]
            must(sorted(map(str, first)) == sorted(waiting), f"{place}: `tool_use` ids were found"
                 f" without `tool_result` blocks immediately after: {waiting}")
            waiting = []
        if role == "assistant":
            last = blocks
        for block in blocks:
            kind = block["type"]
            if kind == "text":
                must(block["text"] != "", f"{place}: text content blocks must be non-empty")
                request.prompt += block["text"] if role == "user" else ""
            elif kind == "tool_use":
                must(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), f"{place}: a bad id")
                must(isinstance(block["input"], dict), f"{place}: input should be an object")
                request.calls.append((block["id"], block["name"], block["input"]))
                waiting.append(block["id"])
            elif kind == "tool_result":
                text = texts(block.get("content"))
                request.results.append((block["tool_use_id"], text))
            elif kind == "thinking":
                own = block["signature"] == provider.seal
                must(own, f"{place}: Invalid `signature` in `thinking` block")
    must(not waiting, "messages: the last call has no result")
    is_loop = request.results and last and any(block["type"] == "tool_use" for block in last)
    if thinking.get("type") == "enabled" and is_loop:
        must(last[0]["type"] == "thinking", "Expected `thinking`, but found `tool_use`")
    for tool in body.get("tools") or []:
        if "input_schema" in tool:
            must(tool["input_schema"].get("type") == "object", "tools: input_schema.type: required")
            request.tools[tool["name"]] = tool["input_schema"]
    return request


GEMINI_FIELDS = "contents systemInstruction tools toolConfig generationConfig safetySettings".split()
PART_FIELDS = "text thought thoughtSignature functionCall functionResponse inlineData fileData".split()


def joined(contents):
    """Neighbours of one role are one turn."""
    turns = []
    for content in contents:
        role = "model" if content.get("role") == "model" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] += content["parts"]
        else:
            turns.append({"role": role, "parts": list(content["parts"])})
    return turns


def gemini(body, provider):
    known(body, GEMINI_FIELDS + ["cachedContent", "model", "labels"], "")
    request = Request(body)
    config = body.get("generationConfig") or {}
    request.thinks = bool((config.get("thinkingConfig") or {}).get("includeThoughts"))
    waiting = []
    for at, content in enumerate(joined(body["contents"])):
        place, role = f"contents[{at}]", content["role"]
        must(content["parts"], f"{place}.parts must not be empty")
        answers = []
        for number, part in enumerate(content["parts"]):
            known(part, PART_FIELDS, f"{place}.parts[{number}].")
            if "text" in part and role == "user":
                request.prompt += part["text"]
            if "functionCall" in part:
                call = part["functionCall"]
                first = not waiting
                # Gemini 3 wants the signature of the first of parallel calls.
                signature = part.get("thoughtSignature")
                must(not first or signature in (provider.seal, "skip_thought_signature_validator"),
                     f"Function call is missing a thought_signature in functionCall parts: {place}")
                must(isinstance(call.get("args", {}), dict), f"{place}: args must be an object")
                id = call.get("id") or f"{call['name']}-{len(request.calls)}"
                request.calls.append((id, call["name"], call.get("args", {})))
                waiting.append((id, call["name"], call.get("id")))
            elif part.get("thoughtSignature"):
                must(part["thoughtSignature"] == provider.seal, f"{place}: a bad thought_signature")
            if "functionResponse" in part:
                answers.append(part["functionResponse"])
        if answers:
            must(len(answers) == len(waiting), f"{place}: the number of function response parts is"
                 " not equal to the number of function call parts of the function call turn")
        for answer in answers:
            must(isinstance(answer["response"], dict), f"{place}: response must be an object")
            fits = [call for call in waiting if call[1] == answer["name"]
                    and call[2] == answer.get("id")]
            must(fits, f"{place}: answers a call that was not made: {answer}")
            waiting.remove(fits[0])
            request.results.append((fits[0][0], json.dumps(answer["response"])))
        must(role == "model" or not waiting, f"{place}: a function call turn has no answer")
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or []:
            schema = function.get("parametersJsonSchema") or function.get("parameters") or {}
            request.tools[function["name"]] = schema
    return request


READERS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}


def read(dialect, body, provider):
    try:
        request = READERS[dialect](body, provider)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Refused(f"cannot be read: {type(error).__name__} {error}") from error
    check_pairs(request)
    return request
