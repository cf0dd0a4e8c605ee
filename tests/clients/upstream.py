"""A scripted LLM provider for coding agents: OpenAI Chat Completions and Responses, streamed or not.

What it does is said by the model name that the gateway sends:

- `steady` answers. If the prompt contains `[[run: COMMAND]]` and no tool result has come yet, it
  calls the client's own tool for running commands with COMMAND; after the result it says what the
  tool returned.
- `dies…` answers with the first half of the same stream and then resets the connection.
- `early…` sends the first event of a stream, which has no content, and then resets the connection.

A name may go on after the word (`dies-codex`), so that each client meets targets of its own.

Every request that was received is counted by model name: `GET /calls`.
"""

import json
import re
import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = "The tide turns at noon, says the harbour master. All boats may leave."
RUN = re.compile(r"\[\[run: (.*?)\]\]")
# Names that the clients give to their tool for running a shell command.
SHELL_TOOLS = ("exec_command", "shell_command", "shell", "local_shell", "bash", "echo_text")


class Calls:
    """How often each model name was asked for."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = {}

    def add(self, model):
        with self.lock:
            self.counts[model] = self.counts.get(model, 0) + 1


CALLS = Calls()


class Turn:
    """What one request asks for: text, or a tool call."""

    def __init__(self, body):
        self.body = body
        self.model = body.get("model", "")
        text = json.dumps(body.get("messages") or body.get("input") or "")
        command = RUN.search(text)
        self.result = self.tool_result()
        self.tool = None
        if command and self.result is None:
            self.tool = self.shell_tool(command.group(1))

    def shell_tool(self, command):
        for tool in self.body.get("tools") or []:
            function = tool.get("function") or tool
            name = function.get("name") or tool.get("type")
            if name not in SHELL_TOOLS:
                continue
            schema = function.get("parameters") or {}
            return name, json.dumps(self.arguments(schema, command))
        return None

    @staticmethod
    def arguments(schema, command):
        """Every required argument, the command in the one that takes it."""
        filled = {}
        properties = schema.get("properties") or {}
        for name in schema.get("required") or list(properties)[:1]:
            kind = (properties.get(name) or {}).get("type")
            if name in ("cmd", "command", "text"):
                filled[name] = ["sh", "-c", command] if kind == "array" else command
            elif kind in ("number", "integer"):
                filled[name] = 10000
            else:
                filled[name] = "run a command"
        return filled

    def tool_result(self):
        for message in reversed(self.body.get("messages") or []):
            if message.get("role") == "tool":
                return json.dumps(message.get("content"))
        items = self.body.get("input")
        for item in reversed(items if isinstance(items, list) else []):
            if str(item.get("type", "")).endswith("call_output"):
                return json.dumps(item.get("output"))
        return None

    def text(self):
        if self.result is None:
            return ANSWER
        return "The tool said " + re.sub(r"[^a-z0-9-]+", " ", self.result.lower()).strip()


def chat_events(turn):
    """The chunks of a chat completion."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": turn.model}

    def chunk(delta, reason=None):
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield None, chunk({"role": "assistant", "content": ""})
    if turn.tool:
        name, arguments = turn.tool
        call = {"index": 0, "id": "call_1", "type": "function"}
        yield None, chunk({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
        for start in range(0, len(arguments), 12):
            piece = {"arguments": arguments[start : start + 12]}
            yield None, chunk({"tool_calls": [{"index": 0, "function": piece}]})
        yield None, chunk({}, "tool_calls")
    else:
        for word in turn.text().split(" "):
            yield None, chunk({"content": word + " "})
        yield None, chunk({}, "stop")
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    yield None, {**base, "choices": [], "usage": usage}
    yield None, "[DONE]"


def chat_whole(turn):
    message = {"role": "assistant", "content": None if turn.tool else turn.text()}
    if turn.tool:
        function = {"name": turn.tool[0], "arguments": turn.tool[1]}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    reason = "tool_calls" if turn.tool else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": turn.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    }


def output_items(turn, is_done):
    status = "completed" if is_done else "in_progress"
    if turn.tool:
        name, arguments = turn.tool
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name}
        return [{**item, "arguments": arguments if is_done else "", "status": status}]
    part = {"type": "output_text", "text": turn.text(), "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": status}
    return [{**item, "content": [part] if is_done else []}]


def response_object(turn, is_done):
    details = {"cached_tokens": 0}
    usage = {"input_tokens": 5, "input_tokens_details": details, "output_tokens": 7}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": turn.model,
        "status": "completed" if is_done else "in_progress",
        "output": output_items(turn, True) if is_done else [],
        "usage": usage if is_done else None,
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def response_events(turn):
    """The events of a response, numbered."""
    place = {"output_index": 0, "item_id": "fc_1" if turn.tool else "msg_1"}
    started, done = output_items(turn, False)[0], output_items(turn, True)[0]
    events = [
        ("response.created", {"response": response_object(turn, False)}),
        ("response.output_item.added", {"output_index": 0, "item": started}),
    ]
    if turn.tool:
        arguments = turn.tool[1]
        pieces = [arguments[at : at + 12] for at in range(0, len(arguments), 12)]
        kind = "response.function_call_arguments"
        events += [(f"{kind}.delta", {**place, "delta": piece}) for piece in pieces]
        events.append((f"{kind}.done", {**place, "arguments": arguments}))
    else:
        place |= {"content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": []}
        events.append(("response.content_part.added", {**place, "part": empty}))
        words = [word + " " for word in turn.text().split(" ")]
        kind = "response.output_text"
        events += [(f"{kind}.delta", {**place, "delta": word, "logprobs": []}) for word in words]
        events.append((f"{kind}.done", {**place, "text": turn.text(), "logprobs": []}))
        events.append(("response.content_part.done", {**place, "part": done["content"][0]}))
    events.append(("response.output_item.done", {"output_index": 0, "item": done}))
    events.append(("response.completed", {"response": response_object(turn, True)}))
    for number, (name, data) in enumerate(events):
        yield name, {"type": name, "sequence_number": number, **data}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/calls":
            with CALLS.lock:
                return self.json(200, CALLS.counts)
        models = [{"id": name, "object": "model", "owned_by": "x"} for name in ("steady",)]
        return self.json(200, {"object": "list", "data": models})

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        turn = Turn(body)
        CALLS.add(turn.model)
        is_responses = self.path.split("?")[0].endswith("/responses")
        events = list(response_events(turn) if is_responses else chat_events(turn))
        for word, count in (("dies", len(events) // 2), ("early", 1)):
            if turn.model.startswith(word):
                return self.die(events[:count])
        if body.get("stream"):
            return self.stream(events)
        whole = response_object(turn, True) if is_responses else chat_whole(turn)
        return self.json(200, whole)

    def json(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream_head(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def event(self, name, data):
        text = data if isinstance(data, str) else json.dumps(data)
        lead = f"event: {name}\n" if name else ""
        data = f"{lead}data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, events):
        self.stream_head()
        for name, data in events:
            self.event(name, data)
        self.wfile.write(b"0\r\n\r\n")

    def die(self, events):
        """These events of a stream, then a reset."""
        self.stream_head()
        for name, data in events:
            self.event(name, data)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    # Ends with whoever started it.
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever(poll_interval=0.2)


if __name__ == "__main__":
    main()
