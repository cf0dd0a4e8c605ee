"""Agents in a tool loop whose provider is killed between two turns.

Each cell has a gateway of its own with two providers: the first plays the first turn of the loop, a
call of a tool, and is killed; the second, usually of another vendor, is asked to go on in the
middle of the loop (`provider.py`, which refuses what its vendor would refuse). The client must end
as if nothing had happened:

- Codex and Claude Code print the last text, end with 0 and speak of no error or retry.
- Programs with the Vercel AI SDK and LangChain print what they saw of every turn. That must equal
  what they print when a provider of the client's own dialect serves the whole loop.

Usage: run.py TIDEGATE-BINARY CLIENTS-FOLDER [CLIENT…]. Prints one line per cell and the sum in the
form that `cargo xtask` adds up.
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
PROMPT = "Ask the harbour. [[loop]]"
LAST = "The tools said tide-42 ebb-43 flow-44. All boats may leave."
LIMIT_S = 150

DIALECTS = ("chat", "responses", "messages", "gemini")
# What a config calls the vendor, where its API begins, and a model that thinks.
PROVIDERS = {
    "chat": ("openai", "/v1", "gpt-5.1"),
    "responses": ("openai", "/v1", "gpt-5.1"),
    "messages": ("anthropic", "", "claude-sonnet-4-5"),
    "gemini": ("gemini", "", "gemini-3-pro-preview"),
}


def both_ways(own):
    others = [dialect for dialect in DIALECTS if dialect != own]
    return [(own, other) for other in others] + [(other, own) for other in others]


# The client, its dialect, and who serves it: who is killed, who goes on.
AGENTS = {
    "codex": ("responses", [("responses", "messages"), ("responses", "gemini"),
                            ("messages", "gemini"), ("gemini", "messages"),
                            ("messages", "responses"), ("gemini", "responses")]),
    "claude": ("messages", [("messages", "chat"), ("messages", "gemini"),
                            ("responses", "gemini"), ("gemini", "chat"),
                            ("chat", "messages"), ("gemini", "messages")]),
}
LIBRARIES = ("ai", "langchain")


class Stage:
    """Two providers and a gateway; everything ends with it."""

    def __init__(self, binary, folder, first, second, dies):
        self.processes, self.folder = [], folder
        self.first = self.provider(first, "ebb", *(["--dies"] if dies else []))
        self.second = self.provider(second, "flow")
        (folder / "tidegate.yaml").write_text(self.config(first, second))
        env = os.environ | {"CLIENTS_KEY": KEY, "UPSTREAM_KEY": "upstream-key-0123456789"}
        gateway = [binary, "serve", "-c", folder / "tidegate.yaml"]
        self.url = self.start("gateway", gateway, r"api +(http://127\.0\.0\.1:\d+)", env=env)

    def provider(self, dialect, name, *flags):
        command = [sys.executable, "-B", HERE / "provider.py", dialect, name, *flags]
        return self.start(name, command, r"(http://127\.0\.0\.1:\d+)")

    def start(self, name, command, pattern, **options):
        log = self.folder / f"{name}.log"
        with open(log, "w") as file:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file,
                                       stderr=subprocess.STDOUT, **options)
        self.processes.append(process)
        for _ in range(600):
            found = re.search(pattern, log.read_text())
            if found:
                return found.group(1)
            time.sleep(0.05)
        raise SystemExit(f"{log} never showed {pattern}:\n{log.read_text()}")

    def config(self, first, second):
        lines = ["listen: 127.0.0.1:0", "admin: { listen: 127.0.0.1:0 }",
                 "keys: [{ name: clients, key: env:CLIENTS_KEY }]",
                 "health: { probe: { every: 0s } }", "providers:"]
        tiers = []
        for name, url, dialect in (("ebb", self.first, first), ("flow", self.second, second)):
            api, base, model = PROVIDERS[dialect]
            only = ""
            if api == "openai":
                only = f", serves: [{dialect}]"
            lines.append(f"  {name}: {{ api: {api}, url: '{url}{base}', key: env:UPSTREAM_KEY{only} }}")
            tiers.append(f"[{name}/{model}]")
        route = f"{{ match: ['*'], tiers: [{', '.join(tiers)}] }}"
        return "\n".join([*lines, "routes:", f"  harbour: {route}", ""])

    def log(self, url):
        with urllib.request.urlopen(f"{url}/log", timeout=10) as answer:
            return json.load(answer)

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


class Scene:
    """A home and a working folder for one run of one client."""

    def __init__(self, folder, url, tools):
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.url, self.node = url, tools / "node"
        # Nothing of the developer's own settings, and no proxy in between.
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "dumb",
                    "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def run(self, command, **env):
        done = subprocess.run([str(word) for word in command], cwd=self.work, env=self.env | env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT_S)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(
            errors="replace")


def codex(scene):
    folder = scene.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'model_provider = "tidegate"\n[model_providers.tidegate]\nname = "tidegate"\n'
        f'base_url = "{scene.url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
    )
    program = scene.node / "node_modules" / ".bin" / "codex"
    flags = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]
    return scene.run([program, "exec", *flags, "-m", "harbour", PROMPT])


def claude(scene):
    # The package's own starter wants its install script; this is the program that it starts.
    program = scene.node / "node_modules" / "@anthropic-ai" / "claude-code-linux-x64" / "claude"
    flags = ["--print", "--verbose", "--output-format", "stream-json", "--model", "harbour"]
    env = {
        "ANTHROPIC_BASE_URL": scene.url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_SMALL_FAST_MODEL": "harbour",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    return scene.run([program, *flags, "--allowedTools", "Bash", "--", PROMPT], **env)


def judge_agent(name, code, output, errors):
    """Why a cell failed; none: it is as it should be."""
    if code != 0 or LAST not in output:
        return "no whole answer"
    if name == "claude":
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        retries = [event for event in events if "retry" in str(event.get("subtype"))]
        if retries or events[-1].get("is_error"):
            return "it noticed"
    elif re.search(r"(?i)\b(retry|retrying|reconnecting|stream error)\b", output + errors):
        return "it noticed"
    return None


def cell(binary, tools, name, dialect, first, second, mode, dies=True):
    """The problem of a cell, if it has one, and what the client printed."""
    with tempfile.TemporaryDirectory(prefix="tidegate-loop-") as folder:
        folder = pathlib.Path(folder)
        stage = Stage(binary, folder, first, second, dies)
        try:
            scene = Scene(folder, stage.url, tools)
            if name in AGENTS:
                code, output, errors = {"codex": codex, "claude": claude}[name](scene)
                problem = judge_agent(name, code, output, errors)
            else:
                program = scene.node / f"{name}.mjs"
                command = ["node", program, dialect, stage.url, "harbour", PROMPT, mode]
                code, output, errors = scene.run(command)
                problem = None if code == 0 and LAST in output else "no whole answer"
            log = stage.log(stage.second)
            if log["refused"]:
                problem = f"the second provider refused: {log['refused']}"
            elif dies and log["turns"] != ["calls", "text"]:
                problem = problem or f"the second provider answered {log['turns']}"
            if problem:
                gateway = (folder / "gateway.log").read_text()
                problem += f" (exit {code}):\n{output[-3000:]}\n{errors[-2000:]}\n{gateway[-2000:]}"
            return problem, output
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S} s", ""
        finally:
            stage.end()


def cells(only):
    for name, (dialect, pairs) in AGENTS.items():
        if not only or name in only:
            yield from ((name, dialect, first, second, "stream") for first, second in pairs)
    for name in LIBRARIES:
        if not only or name in only:
            for dialect in DIALECTS:
                for mode in ("plain", "stream"):
                    # The usual course, which the others are compared with.
                    yield name, dialect, dialect, dialect, mode
                    for first, second in both_ways(dialect):
                        yield name, dialect, first, second, mode


def main(binary, tools, *only):
    passed = failed = 0
    usual = {}
    for name, dialect, first, second, mode in cells(only):
        is_usual = first == second
        began = time.monotonic()
        problem, output = cell(binary, pathlib.Path(tools).resolve(), name, dialect, first, second, mode,
                               dies=not is_usual)
        if is_usual:
            usual[name, dialect, mode] = output
        elif problem is None and name in LIBRARIES and output != usual[name, dialect, mode]:
            problem = f"it saw\n{output}and usually\n{usual[name, dialect, mode]}"
        served = f"by {first} alone" if is_usual else f"{first}, then {second}"
        said = problem or f"{time.monotonic() - began:.0f} s"
        word = "FAILED" if problem else "ok"
        print(f"{name:9} {dialect:9} {mode:6} {served:26} {word}  {said}", flush=True)
        passed, failed = passed + (not problem), failed + bool(problem)
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed;")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
