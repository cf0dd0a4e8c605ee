"""The scene as the programs see it: the gateway, what its servers offer, and one to kill."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

URL = f"{os.environ['TIDEGATE_URL']}/mcp"
KEY = os.environ["TIDEGATE_KEY"]
NARROW_KEY = os.environ["TIDEGATE_NARROW_KEY"]
FILES = Path(os.environ["FILES"])
REPOSITORY = os.environ["REPOSITORY"]
OFFERED = json.loads(Path(os.environ["OFFERED"]).read_text())

# Whatever takes longer hangs. Starting programs takes seconds on a busy machine.
LIMIT_S = 60
# What is refused because a server is down is refused at once, not after some timeout.
AT_ONCE_S = 5


def tools(*servers, asking):
    """The names under which a client is offered the tools of these servers.

    `asking`: whether the client can be asked for sampling, elicitation and roots. Shared programs
    cannot tell, and offer the same tools to everybody.
    """
    return sorted(
        f"{server}_{tool}"
        for server in servers
        for tool in OFFERED[server]["tools"]
        + (OFFERED[server].get("asking_tools", []) if asking else [])
    )


class Remote:
    """The server that is reached by HTTP; it can be killed and started again."""

    def __init__(self):
        self.port = urlsplit(os.environ["EVERYTHING_URL"]).port
        self.process = None

    def start(self):
        command = ["node", os.environ["EVERYTHING"], "streamableHttp"]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "PORT": str(self.port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise TimeoutError("server-everything does not listen")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def noticed(self):
        """Waits until the gateway, which probed it before it listened, has noticed it."""
        request = urllib.request.Request(
            f"{os.environ['TIDEGATE_URL']}/v1/health", headers={"authorization": f"Bearer {KEY}"}
        )
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            with urllib.request.urlopen(request) as answer:
                health = json.load(answer)["backends"]["mcp:everything-http"]
            if health["healthy"] and health["state"] == "closed":
                return
            time.sleep(0.05)
        raise TimeoutError(f"the gateway does not notice server-everything: {health}")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


REMOTE = Remote()
