"""Coding agents and command-line clients, unchanged, against a gateway whose backends fail.

Each client runs as a user runs it (a base url, a key, one prompt) through five situations:

- `normal`: the first target answers.
- `tools`: the model calls the client's own tool, and the client sends the result.
- `down`: the first target refuses connections.
- `early`: the first target dies after its response head and before any content.
- `dies`: the first target dies in the middle of its stream, every time. The gateway may not splice
  two answers, so the client gets an error event; what it does then is its own: clients that retry
  are answered by the second target as soon as the breaker of the first has opened, after three
  failures; a client that does not retry reports the error.

Usage: run.py TIDEGATE-BINARY CLIENTS-FOLDER [CLIENT…] (the folder is made by `cargo xtask
clients`). Prints one line per
cell and the sum in the form that `cargo xtask` adds up.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
KEY = "tg-clients-key-0123456789"
ANSWER = "The tide turns at noon, says the harbour master. All boats may leave."
LIMIT_S = 150


def start(command, log, **options):
    """A process whose output goes into a file."""
    file = open(log, "w")
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT, **options
    )


def wait_for(log, pattern):
    """The first match of a pattern in a growing file."""
    for _ in range(600):
        found = re.search(pattern, log.read_text())
        if found:
            return found.group(1)
        time.sleep(0.1)
    raise SystemExit(f"{log} never showed {pattern}:\n{log.read_text()}")


def config(upstream, clients):
    routes = [
        "  normal: { tiers: [[one/steady], [two/steady]] }",
        "  down: { tiers: [[dead/steady], [two/steady]] }",
    ]
    for client in clients:
        for word in ("early", "dies"):
            routes.append(f"  {word}-{client}: {{ tiers: [[one/{word}-{client}], [two/steady]] }}")
    return "\n".join(
        [
            "listen: 127.0.0.1:0",
            "admin: { listen: 127.0.0.1:0 }",
            "keys: [{ name: clients, key: env:CLIENTS_KEY }]",
            "health: { probe: { every: 0s } }",
            "providers:",
            f"  one: {{ api: openai, url: '{upstream}/v1', key: env:UPSTREAM_KEY }}",
            f"  two: {{ api: openai, url: '{upstream}/v1', key: env:UPSTREAM_KEY }}",
            "  dead: { api: openai, url: 'http://127.0.0.1:1/v1', key: env:UPSTREAM_KEY }",
            "routes:",
            *routes,
        ]
    )


class Scene:
    """A home and a working folder for one run of one client."""

    def __init__(self, folder, url, tools):
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.url, self.tools = url, tools
        # Nothing of the developer's own settings, and no proxy in between.
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "OPENAI_API_KEY": KEY,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "TERM": "dumb",
        }

    def run(self, command, **env):
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.work,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
        )
        return done.returncode, done.stdout.decode(errors="replace")


def codex(scene, model, prompt):
    folder = scene.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'model_provider = "tidegate"\n[model_providers.tidegate]\nname = "tidegate"\n'
        f'base_url = "{scene.url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
    )
    program = scene.tools / "node" / "node_modules" / ".bin" / "codex"
    flags = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]
    return scene.run([program, "exec", *flags, "-m", model, prompt])


def opencode(scene, model, prompt):
    able = {"tool_call": True}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "tidegate",
        "options": {"baseURL": f"{scene.url}/v1", "apiKey": KEY},
        "models": {model: able, "normal": able},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "small_model": "tidegate/normal",
        "permission": {"bash": "allow"},
        "provider": {"tidegate": provider},
    }
    (scene.work / "opencode.json").write_text(json.dumps(settings))
    program = scene.tools / "node" / "node_modules" / ".bin" / "opencode"
    command = [program, "run", "--print-logs", "--log-level", "ERROR", "-m", f"tidegate/{model}"]
    offline = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return scene.run([*command, prompt], **{f"OPENCODE_DISABLE_{name}": "1" for name in offline})


def aider(scene, model, prompt):
    program = scene.tools / "aider" / "python" / "bin" / "aider"
    flags = "no-check-update no-show-model-warnings yes-always no-git no-analytics no-pretty"
    flags = [f"--{flag}" for flag in flags.split()]
    base = ["--openai-api-base", f"{scene.url}/v1", "--model", f"openai/{model}"]
    return scene.run([program, *flags, *base, "--message", prompt])


def llm(scene, model, prompt):
    folder = scene.home / "llm"
    folder.mkdir()
    (folder / "extra-openai-models.yaml").write_text(
        f"- {{model_id: it, model_name: '{model}', api_base: '{scene.url}/v1', "
        "api_key_name: tidegate, supports_tools: true}\n"
    )
    (folder / "keys.json").write_text(json.dumps({"tidegate": KEY}))
    command = [scene.tools / "llm" / "python" / "bin" / "llm", "-m", "it"]
    if "[[run:" in prompt:
        (scene.work / "tools.py").write_text(
            'def echo_text(text: str) -> str:\n    """Echo a text."""\n    return text\n'
        )
        command += ["--functions", "tools.py"]
    return scene.run([*command, prompt], LLM_USER_PATH=str(folder))


CLIENTS = {"codex": codex, "opencode": opencode, "aider": aider, "llm": llm}
# What has no tools of its own, and what does not retry.
WITHOUT_TOOLS, WITHOUT_RETRY = {"aider"}, {"llm"}


def judge(client, situation, code, output):
    """Why a cell failed; none: it is as it should be."""
    flat = " ".join(output.split())
    if situation == "tools":
        return None if "The tool said" in flat and "tide-42" in flat else "no tool result"
    if situation == "dies" and client in WITHOUT_RETRY:
        if ANSWER in flat:
            return "a broken answer looks whole"
        return None if code != 0 and "one/dies" in flat else "the error does not name the target"
    return None if ANSWER in flat and code == 0 else "no whole answer"


def cell(client, situation, url, tools):
    if situation == "tools" and client in WITHOUT_TOOLS:
        return "has no tools of its own", True
    model = situation if situation in ("normal", "down") else f"{situation}-{client}"
    model = "normal" if situation == "tools" else model
    prompt = "do it [[run: echo tide-42]]" if situation == "tools" else "Say something"
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        try:
            code, output = CLIENTS[client](Scene(pathlib.Path(folder), url, tools), model, prompt)
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S} s", False
    took = f"{time.monotonic() - began:.0f} s"
    problem = judge(client, situation, code, output)
    if problem:
        return f"{problem} ({took}, exit {code}):\n{output[-2000:]}", False
    return took, True


def main(binary, tools, *only):
    tools = pathlib.Path(tools)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidegate-clients-"))
    processes = []
    try:
        log = folder / "upstream.log"
        processes.append(start([sys.executable, HERE / "upstream.py"], log))
        upstream = wait_for(log, r"(http://127\.0\.0\.1:\d+)")
        (folder / "tidegate.yaml").write_text(config(upstream, CLIENTS))
        log = folder / "gateway.log"
        env = os.environ | {"CLIENTS_KEY": KEY, "UPSTREAM_KEY": "upstream-key-0123456789"}
        gateway = [binary, "serve", "-c", folder / "tidegate.yaml"]
        processes.append(start(gateway, log, env=env))
        url = wait_for(log, r"api +(http://127\.0\.0\.1:\d+)")
        passed = failed = 0
        for client in only or CLIENTS:
            for situation in ("normal", "tools", "down", "early", "dies"):
                said, is_good = cell(client, situation, url, tools)
                print(f"{client:9} {situation:7} {'ok' if is_good else 'FAILED'}  {said}", flush=True)
                passed, failed = passed + is_good, failed + (not is_good)
        with urllib.request.urlopen(f"{upstream}/calls") as answer:
            print(f"calls by model: {answer.read().decode()}")
        print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed;")
        return 1 if failed else 0
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
