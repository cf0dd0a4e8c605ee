"""Four providers, one of each dialect, that answer with the samples of `tests/dialects`.

A request names its sample in its text, as `[[tool-call]]`; the path says the dialect. So the same
exchange can be asked of a provider of the client's own dialect and of every other one, and what the
client's SDK makes of them can be compared. Streams go out in small pieces that end anywhere.

As strict as a vendor in one thing: the result of a call that is not in the conversation is a 400,
because that is half a conversation. Threads are kept by no vendor here.

Prints its address, and ends with its stdin.
"""

import json
import pathlib
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "dialects"
PIECE = 61
DIALECTS = (
    ("/v1/chat/completions", "chat"),
    ("/v1/responses", "responses"),
    ("/v1/messages", "messages"),
    ("/v1beta/models/", "gemini"),
)


# What Anthropic says of a thread that it does not have any more.
THREAD_GONE = json.dumps({
    "type": "error",
    "error": {
        "type": "not_found_error",
        "message": "The thread was not found.",
        "details": {"error_code": "thread_not_found"},
    },
}).encode()


def objects(value):
    """Every object in a body, in its order."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from objects(inner)


def has_strange_result(body):
    """Whether a result answers a call that is not there, in any dialect."""
    called, answered = set(), set()
    for it in objects(body):
        kind = it.get("type")
        if kind in ("function", "tool_use"):
            called.add(it.get("id"))
        elif kind == "function_call":
            called.add(it.get("call_id"))
        elif kind == "function_call_output":
            answered.add(it.get("call_id"))
        called.add((it.get("functionCall") or {}).get("name"))
        answered.add((it.get("functionResponse") or {}).get("name"))
        answered.update((it.get("tool_call_id"), it.get("tool_use_id")))
    return bool(answered - called - {None})


class Vendor(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        path = self.path.partition("?")[0]
        dialect = next((name for start, name in DIALECTS if path.startswith(start)), None)
        # The last one: a conversation may have several.
        found = re.findall(rb"\[\[([a-z-]+)\]\]", body)
        if dialect is None or not found:
            return self.whole(404, b'{"error":{"message":"no sample is named"}}')
        sample = found[-1].decode()
        asked = json.loads(body)
        if (asked.get("thread") or {}).get("type") == "continue":
            return self.whole(404, THREAD_GONE)
        if has_strange_result(asked):
            return self.whole(400, b'{"error":{"message":"a result without its call"}}')
        is_stream = path.endswith(":streamGenerateContent") or asked.get("stream") is True
        if sample == "limited":
            return self.whole(429, (SAMPLES / dialect / "error.429.json").read_bytes())
        if is_stream:
            return self.stream((SAMPLES / dialect / f"{sample}.stream.sse").read_bytes())
        return self.whole(200, (SAMPLES / dialect / f"{sample}.reply.json").read_bytes())

    def whole(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, body):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at in range(0, len(body), PIECE):
            piece = body[at : at + PIECE]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
