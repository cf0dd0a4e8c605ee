"""A scripted provider that plays a tool loop, strict as its vendor is about the history.

Usage: provider.py DIALECT NAME [--dies], where DIALECT is `chat`, `responses`, `messages` or
`gemini`.

If the prompt contains `[[loop]]` and the client has a tool for running commands, the loop is: a
call, then two calls at once, then a text that says what the tools returned. Which turn it is, is
read from the results in the history, so any provider can go on where another one stopped. Other
requests (titles, warm-ups) are answered with a short text.

With `--dies` the process kills itself when its first call of a tool has been sent: the client runs
the tool, and at its next request nobody is there.

`GET /log` tells what was received: turns answered, and every request that was refused.
"""

import json
import os
import re
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from history import Refused, read
from speech import WRITERS, Said

MARKS = ("tide-42", "ebb-43", "flow-44")
# Names that the clients give to their tool for running a shell command.
SHELL_TOOLS = ("exec_command", "shell_command", "shell", "Bash", "bash", "echo_text")
THOUGHT = "The harbour must be asked first."


class Provider:
    """The script and what was received."""

    def __init__(self, dialect, name, dies):
        self.dialect, self.name, self.dies = dialect, name, dies
        # Base64, as all vendors have it; of one provider only.
        self.seal = {"chat": "", "responses": "gAAAAABvbGQ=", "messages": "EqQBCkYIBxgC",
                     "gemini": "Es8CCswCAb4="}[dialect]
        self.lock = threading.Lock()
        self.number = 0
        self.turns, self.refused = [], []

    def said(self, request, model):
        with self.lock:
            self.number += 1
            number = f"{self.name}{self.number}"
        tool = next((name for name in SHELL_TOOLS if name in request.tools), None)
        if "[[loop]]" not in request.prompt or tool is None:
            return Said(model, number, "", "Harbour talk", [], self.seal)
        heard = " ".join(text for _, text in request.results)
        seen = [mark for mark in MARKS if mark in heard]
        asked = {0: MARKS[:1], 1: MARKS[1:]}.get(len(seen), ())
        if not asked:
            text = "The tools said " + " ".join(seen) + ". All boats may leave."
            return self.noted("text", Said(model, number, "", text, [], self.seal))
        schema = request.tools[tool]
        calls = [(tool, arguments(schema, f"echo {mark}")) for mark in asked]
        thinking = THOUGHT if request.thinks else ""
        return self.noted("calls", Said(model, number, thinking, "", calls, self.seal))

    def noted(self, kind, said):
        with self.lock:
            self.turns.append(kind)
        return said


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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/log":
            with self.provider.lock:
                log = {"turns": self.provider.turns, "refused": self.provider.refused}
                return self.json(200, log)
        return self.json(200, {"object": "list", "data": []})

    def do_POST(self):
        provider = self.provider
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        if self.path.split("?")[0].endswith(("/count_tokens", ":countTokens")):
            return self.json(200, {"input_tokens": 7, "totalTokens": 7})
        model = body.get("model") or re.split(r"[/:]", self.path)[-2]
        try:
            request = read(provider.dialect, body, provider)
        except Refused as refused:
            with provider.lock:
                provider.refused.append(str(refused))
            return self.json(400, error(provider.dialect, str(refused)))
        is_stream = request.is_stream or ":streamGenerateContent" in self.path
        said = provider.said(request, model)
        whole, stream = WRITERS[provider.dialect]
        if is_stream:
            self.stream(list(stream(said)))
        else:
            self.json(200, whole(said))
        if provider.dies and said.calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    def json(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            lead = f"event: {name}\n" if name else ""
            block = f"{lead}data: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
        self.wfile.write(b"0\r\n\r\n")


def error(dialect, sentence):
    if dialect == "messages":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": sentence}}
    if dialect == "gemini":
        return {"error": {"code": 400, "message": sentence, "status": "INVALID_ARGUMENT"}}
    kind = "invalid_request_error"
    return {"error": {"message": sentence, "type": kind, "param": None, "code": None}}


def main(dialect, name, *flags):
    Handler.provider = Provider(dialect, name, "--dies" in flags)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    # Ends with whoever started it.
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever(poll_interval=0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
