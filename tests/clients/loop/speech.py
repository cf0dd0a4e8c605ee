"""Writes an answer in each dialect, whole and as the events of a stream.

An answer is a `Said`: thinking, a text and calls of tools. The shapes are the vendors' own, with
the ids that they give: `toolu_…`, `call_…` and `fc_…`, and none from Gemini's older models.
"""

import json


class Said:
    """One answer in no dialect."""

    def __init__(self, model, number, thinking, text, calls, seal):
        self.model, self.number = model, number
        self.thinking, self.text = thinking, text
        # (name, arguments)
        self.calls = calls
        self.seal = seal

    def ids(self, prefix):
        return [f"{prefix}{self.number}x{at}" for at in range(len(self.calls))]


USAGE = (120, 40, 30, 7)  # input, of it cached, output, of it reasoning


def pieces(text, size=9):
    return [text[at : at + size] for at in range(0, len(text), size)]


def chat_whole(said):
    message = {"role": "assistant", "content": said.text or None, "refusal": None}
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for id, (name, args) in zip(said.ids("call_"), said.calls)
    ]
    if calls:
        message["tool_calls"] = calls
    reason = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    base = {"id": f"chatcmpl-{said.number}", "created": 1760000000, "model": said.model}
    return {**base, "object": "chat.completion", "choices": [choice], "usage": chat_usage()}


def chat_usage():
    given, cached, made, thought = USAGE
    return {
        "prompt_tokens": given,
        "completion_tokens": made,
        "total_tokens": given + made,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def chat_stream(said):
    base = {"id": f"chatcmpl-{said.number}", "created": 1760000000, "model": said.model}
    base["object"] = "chat.completion.chunk"

    def chunk(delta, reason=None):
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(said.text):
        yield chunk({"content": piece})
    for at, (id, (name, args)) in enumerate(zip(said.ids("call_"), said.calls)):
        head = {"index": at, "id": id, "type": "function"}
        yield chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        for piece in pieces(json.dumps(args)):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if said.calls else "stop")
    yield None, {**base, "choices": [], "usage": chat_usage()}
    yield None, "[DONE]"


def responses_items(said):
    items = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{said.number}", "summary": summary,
                      "encrypted_content": said.seal})
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
        items.append({"type": "message", "id": f"msg_{said.number}", "role": "assistant",
                      "status": "completed", "content": [part]})
    for at, (id, (name, args)) in enumerate(zip(said.ids("call_"), said.calls)):
        items.append({"type": "function_call", "id": f"fc_{said.number}x{at}", "call_id": id,
                      "name": name, "arguments": json.dumps(args), "status": "completed"})
    return items


def responses_whole(said, is_done=True):
    given, cached, made, thought = USAGE
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": given + made,
    }
    return {
        "id": f"resp_{said.number}",
        "object": "response",
        "created_at": 1760000000,
        "model": said.model,
        "status": "completed" if is_done else "in_progress",
        "output": responses_items(said) if is_done else [],
        "usage": usage if is_done else None,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def responses_stream(said):
    events = [("response.created", {"response": responses_whole(said, False)})]
    for at, item in enumerate(responses_items(said)):
        place = {"output_index": at, "item_id": item["id"]}
        empty = {"reasoning": {"summary": []}, "message": {"content": [], "status": "in_progress"},
                 "function_call": {"arguments": "", "status": "in_progress"}}[item["type"]]
        events.append(("response.output_item.added", {"output_index": at, "item": {**item, **empty}}))
        if item["type"] == "reasoning":
            events += part_events("response.reasoning_summary", {**place, "summary_index": 0},
                                  {"type": "summary_text"}, "text", said.thinking)
        elif item["type"] == "message":
            events += part_events("response", {**place, "content_index": 0},
                                  {"type": "output_text", "annotations": []}, "text", said.text)
        else:
            kind = "response.function_call_arguments"
            for piece in pieces(item["arguments"]):
                events.append((f"{kind}.delta", {**place, "delta": piece}))
            events.append((f"{kind}.done", {**place, "arguments": item["arguments"]}))
        events.append(("response.output_item.done", {"output_index": at, "item": item}))
    events.append(("response.completed", {"response": responses_whole(said)}))
    for number, (name, data) in enumerate(events):
        yield name, {"type": name, "sequence_number": number, **data}


def part_events(prefix, place, part, key, text):
    """A part of text: added, its deltas, done."""
    is_summary = prefix.endswith("summary")
    added, of_text = (f"{prefix}_part", f"{prefix}_text") if is_summary else (
        f"{prefix}.content_part", f"{prefix}.output_text")
    events = [(f"{added}.added", {**place, "part": {**part, key: ""}})]
    events += [(f"{of_text}.delta", {**place, "delta": piece}) for piece in pieces(text)]
    events.append((f"{of_text}.done", {**place, key: text}))
    events.append((f"{added}.done", {**place, "part": {**part, key: text}}))
    return events


def messages_blocks(said):
    blocks = []
    if said.thinking:
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": said.seal})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    for id, (name, args) in zip(said.ids("toolu_"), said.calls):
        blocks.append({"type": "tool_use", "id": id, "name": name, "input": args})
    return blocks


def messages_whole(said, is_done=True):
    given, cached, made, thought = USAGE
    usage = {"input_tokens": given - cached, "cache_read_input_tokens": cached,
             "cache_creation_input_tokens": 0, "output_tokens": made if is_done else 1}
    if is_done:
        usage["output_tokens_details"] = {"thinking_tokens": thought}
    reason = "tool_use" if said.calls else "end_turn"
    return {
        "id": f"msg_{said.number}",
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": messages_blocks(said) if is_done else [],
        "stop_reason": reason if is_done else None,
        "stop_sequence": None,
        "usage": usage,
    }


def messages_stream(said):
    def event(kind, **data):
        return kind, {"type": kind, **data}

    yield event("message_start", message=messages_whole(said, False))
    yield event("ping")
    for at, block in enumerate(messages_blocks(said)):
        if block["type"] == "thinking":
            empty, deltas = {**block, "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": piece} for piece in pieces(said.thinking)]
            deltas.append({"type": "signature_delta", "signature": said.seal})
        elif block["type"] == "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(said.text)]
        else:
            empty, text = {**block, "input": {}}, json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]
        yield event("content_block_start", index=at, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=at, delta=delta)
        yield event("content_block_stop", index=at)
    reason = "tool_use" if said.calls else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    usage = {"output_tokens": USAGE[2], "output_tokens_details": {"thinking_tokens": USAGE[3]}}
    yield event("message_delta", delta=delta, usage=usage)
    yield event("message_stop")


def gemini_parts(said):
    parts = [{"text": said.thinking, "thought": True}] if said.thinking else []
    parts += [{"text": said.text}] if said.text else []
    for at, (name, args) in enumerate(said.calls):
        part = {"functionCall": {"name": name, "args": args}}
        # The first of parallel calls is signed.
        parts.append(part if at else {**part, "thoughtSignature": said.seal})
    return parts


def gemini_chunk(said, parts, is_last):
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    chunk = {"candidates": [candidate], "modelVersion": said.model,
             "responseId": f"answer{said.number}"}
    given, cached, made, thought = USAGE
    # What was given is told with every chunk, what was made with the last.
    counts = {"promptTokenCount": given, "cachedContentTokenCount": cached}
    if is_last:
        candidate["finishReason"] = "STOP"
        counts |= {"candidatesTokenCount": made - thought, "thoughtsTokenCount": thought}
    chunk["usageMetadata"] = {**counts, "totalTokenCount": given + (made if is_last else 0)}
    return chunk


def gemini_whole(said):
    return gemini_chunk(said, gemini_parts(said), True)


def gemini_stream(said):
    parts = []
    for part in gemini_parts(said):
        if "functionCall" in part:
            parts.append(part)
        else:
            parts += [{**part, "text": piece} for piece in pieces(part["text"])]
    for part in parts:
        yield None, gemini_chunk(said, [part], False)
    yield None, gemini_chunk(said, [{"text": ""}], True)


WRITERS = {
    "chat": (chat_whole, chat_stream),
    "responses": (responses_whole, responses_stream),
    "messages": (messages_whole, messages_stream),
    "gemini": (gemini_whole, gemini_stream),
}
