"""What each SDK makes of one exchange, plain and by its streaming helper.

Every function here asks a vendor behind the gateway (`vendor-chat`, `vendor-gemini`, …) for a sample
of `tests/dialects`, with a request as a user of that SDK writes it, and returns the SDK's own typed
object as a dictionary. What no two answers share is taken out: ids (replaced by their place), dates,
names of models and tiers. So is what a vendor seals for itself: signatures and encrypted reasoning,
and the empty blocks that carry Google's through a dialect without a place for them. What a vendor may
leave out or send empty counts as absent.
"""

import json

from google.genai import types
from pydantic import BaseModel
from scene import anthropic_client, gemini_client, openai_client

MODELS = {
    "chat": "vendor-chat/gpt-5.1",
    "responses": "vendor-responses/gpt-5.1",
    "messages": "vendor-messages/claude-sonnet-4-5",
    "gemini": "vendor-gemini/gemini-2.5-flash",
}
SCHEMA = {
    "type": "object",
    "properties": {
        "place": {"type": "string"},
        "options": {
            "type": "object",
            "properties": {
                "unit": {"type": "string", "enum": ["metre", "foot"]},
                "days": {"type": "array", "items": {"type": "integer"}},
            },
        },
    },
    "required": ["place"],
}


# One of each: making a client takes longer than asking it.
OPENAI, ANTHROPIC, GEMINI = openai_client(), anthropic_client(), gemini_client()


class Tide(BaseModel):
    """What the sample `json-schema` holds."""

    place: str
    metres: float


def ask(sample):
    return f"When is high water in Kiel? [[{sample}]]"


def pruned(value, quiet=()):
    """Without what is absent, and without these keys, at any depth."""
    if isinstance(value, dict):
        items = ((key, pruned(it, quiet)) for key, it in value.items() if key not in quiet)
        return {key: it for key, it in items if it is not None and it != [] and it != {}}
    if isinstance(value, list):
        return [pruned(it, quiet) for it in value]
    return value


def without_zeros(usage):
    """Counts that are not zero; a vendor that does not count something says nothing of it."""
    inner = {key: without_zeros(it) if isinstance(it, dict) else it for key, it in usage.items()}
    return {key: it for key, it in inner.items() if it not in (0, None, {})}


def numbered(ids):
    """Ids by their place; each must be one, and no two the same."""
    assert all(isinstance(it, str) and it for it in ids), ids
    assert len(set(ids)) == len(ids), ids
    return [f"id {at}" for at in range(len(ids))]


def chat(vendor, sample, is_stream):
    client = OPENAI.chat.completions
    request = {
        "model": MODELS[vendor],
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": ask(sample)},
        ],
        "max_completion_tokens": 4096,
    }
    if "tool" in sample:
        request["tools"] = [
            {"type": "function", "function": {"name": name, "description": "d", "parameters": SCHEMA}}
            for name in ("get_tide", "get_wind")
        ]
    if sample == "thinking":
        request["reasoning_effort"] = "low"
    if sample == "stop":
        request["stop"] = ["three"]
    if is_stream:
        with client.stream(**request, stream_options={"include_usage": True}) as stream:
            pieces = [event.delta for event in stream if event.type == "content.delta"]
            answer = stream.get_final_completion()
        assert "".join(pieces) == (answer.choices[0].message.content or ""), pieces
    else:
        answer = client.create(**request)
    return chat_seen(answer)


def chat_seen(answer):
    quiet = ("id", "created", "model", "system_fingerprint", "service_tier", "index", "parsed")
    shown = answer.model_dump()
    for choice in shown["choices"]:
        calls = choice["message"].get("tool_calls") or []
        ids = numbered([call["id"] for call in calls])
        for call, place in zip(calls, ids):
            call["place"] = place
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            call["function"].pop("parsed_arguments", None)
            sealed = call.pop("extra_content", None)
            assert sealed is None or list(sealed["google"]) == ["thought_signature"], sealed
    shown["usage"] = without_zeros(shown["usage"])
    return pruned(shown, quiet)


def responses(vendor, sample, is_stream):
    client = OPENAI.responses
    request = {
        "model": MODELS[vendor],
        "instructions": "Be brief.",
        "input": ask(sample),
        "max_output_tokens": 4096,
        "store": False,
    }
    if "tool" in sample:
        request["tools"] = [
            {"type": "function", "name": name, "parameters": SCHEMA, "strict": False}
            for name in ("get_tide", "get_wind")
        ]
    if sample == "thinking":
        request["reasoning"] = {"effort": "low", "summary": "auto"}
    if is_stream:
        with client.stream(**request) as stream:
            pieces = [it.delta for it in stream if it.type == "response.output_text.delta"]
            answer = stream.get_final_response()
        assert "".join(pieces) == answer.output_text, pieces
    else:
        answer = client.create(**request)
    return responses_seen(answer)


def responses_seen(answer):
    # What the request set is repeated by a response; the samples do not know the request.
    told = ("object", "status", "error", "incomplete_details", "output", "usage")
    whole = answer.model_dump()
    shown = {key: whole.get(key) for key in told}
    calls = [item for item in shown["output"] if item["type"] == "function_call"]
    ids = numbered([call["call_id"] for call in calls])
    for call, place in zip(calls, ids):
        call["call_id"] = place
        call["arguments"] = json.loads(call["arguments"])
    numbered([item["id"] for item in shown["output"]])
    shown["output"] = [it for it in shown["output"] if it["type"] != "reasoning" or it["summary"]]
    shown["usage"] = without_zeros(shown["usage"])
    return pruned(shown, ("id", "encrypted_content", "parsed_arguments", "parsed"))


def messages(vendor, sample, is_stream):
    client = ANTHROPIC.messages
    request = {
        "model": MODELS[vendor],
        "system": "Be brief.",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": ask(sample)}],
    }
    if "tool" in sample:
        request["tools"] = [
            {"name": name, "input_schema": SCHEMA} for name in ("get_tide", "get_wind")
        ]
    if sample == "thinking":
        request["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    if sample == "stop":
        request["stop_sequences"] = ["three"]
    if is_stream:
        with client.stream(**request) as stream:
            pieces = list(stream.text_stream)
            answer = stream.get_final_message()
        assert "".join(pieces) == "".join(it.text for it in answer.content if it.type == "text")
    else:
        answer = client.create(**request)
    return messages_seen(answer)


def messages_seen(answer):
    shown = answer.model_dump()
    calls = [block for block in shown["content"] if block["type"] == "tool_use"]
    for call, place in zip(calls, numbered([call["id"] for call in calls])):
        call["place"] = place
    shown["usage"].pop("service_tier", None)
    shown["usage"].pop("cache_creation", None)
    shown["usage"] = without_zeros(shown["usage"])
    is_sealed = lambda it: it["type"] == "redacted_thinking" or it.get("thinking") == ""
    shown["content"] = [block for block in shown["content"] if not is_sealed(block)]
    quiet = ("id", "model", "signature", "parsed_output", "caller", "container", "_request_id")
    return pruned(shown, quiet)


def gemini(vendor, sample, is_stream):
    config = {"system_instruction": "Be brief.", "max_output_tokens": 4096}
    if "tool" in sample:
        declarations = [
            {"name": name, "description": "d", "parameters_json_schema": SCHEMA}
            for name in ("get_tide", "get_wind")
        ]
        config["tools"] = [{"function_declarations": declarations}]
        config["automatic_function_calling"] = {"disable": True}
    if sample == "thinking":
        config["thinking_config"] = {"thinking_budget": 1024, "include_thoughts": True}
    if sample == "stop":
        config["stop_sequences"] = ["three"]
    request = {
        "model": MODELS[vendor],
        "contents": ask(sample),
        "config": types.GenerateContentConfig(**config),
    }
    if is_stream:
        return gemini_seen(list(GEMINI.models.generate_content_stream(**request)))
    return gemini_seen([GEMINI.models.generate_content(**request)])


def gemini_seen(chunks):
    """One answer, or the chunks of one: their parts put together, the last of all else."""
    parts, shown = [], {}
    for chunk in chunks:
        told = pruned(chunk.model_dump(mode="json"), ("sdk_http_response", "thought_signature"))
        for candidate in told.get("candidates", []):
            for part in candidate.pop("content", {}).get("parts", []):
                is_more = parts and "text" in part and "text" in parts[-1]
                if is_more and part.get("thought") == parts[-1].get("thought"):
                    parts[-1]["text"] += part["text"]
                elif part.get("text") != "":
                    parts.append(part)
            candidate.pop("index", None)
        shown |= told
    for part in parts:
        # Only newer models give ids; a call is answered by its name elsewhere.
        part.get("function_call", {}).pop("id", None)
    shown["usage_metadata"].pop("prompt_tokens_details", None)
    for quiet in ("model_version", "response_id", "automatic_function_calling_history", "parsed"):
        shown.pop(quiet, None)
    return pruned({**shown, "parts": parts})


CLIENTS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}
