"""Three replicas as processes, their store, their balancer, an MCP server and a provider."""

import json
import os
import signal
import socket
import subprocess
import time

import httpx2

SECRET = "a secret of the fleet, longer than it must be"
OTHER_SECRET = "another secret, of another fleet, long enough"
SCRIPT = {
    "name": "counter",
    "tools": [
        {"name": "count", "acts": ["count"]},
        {"name": "slow", "acts": [{"slow": 1500}]},
    ],
}
HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("one", "two", "three")


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def store_says(port, commands):
    """What the store answers to commands, each a line."""
    with socket.create_connection(("127.0.0.1", port)) as it:
        it.sendall(commands + b"QUIT\r\n")
        with it.makefile("rb") as answer:
            return answer.read().decode()


def store_traffic(port):
    """What the store has counted: commands, bytes in, bytes out."""
    lines = store_says(port, b"INFO stats\r\n").splitlines()
    pairs = dict(line.split(":", 1) for line in lines if ":" in line)
    names = ("total_commands_processed", "total_net_input_bytes", "total_net_output_bytes")
    return [int(pairs[name]) for name in names]


class Fleet:
    def __init__(self, tidegate, folder):
        self.tidegate, self.folder = tidegate, folder
        self.processes = []
        self.redis_port = free_port()
        self.spawn(["redis-server", "--port", str(self.redis_port), "--save", "", "--bind",
                    "127.0.0.1", "--dir", folder], "redis")
        script = json.dumps(SCRIPT)
        listen = ("--listen", "127.0.0.1:0")
        self.server_url = self.fake("__fake-mcp", *listen, "--script", script)
        self.provider_url = self.fake("__fake")
        self.ports = [free_port() for _ in range(3)]
        self.admins = [free_port() for _ in range(3)]
        self.peers = [free_port() for _ in range(3)]
        self.replicas = [None] * 3
        for at in range(3):
            self.start(at)
        self.front = free_port()
        with open(os.path.join(HERE, "haproxy.cfg")) as file:
            text = file.read().format(front=self.front, **dict(zip(NAMES, self.ports)))
        config = os.path.join(folder, "haproxy.cfg")
        with open(config, "w") as file:
            file.write(text)
        self.spawn(["haproxy", "-db", "-f", config], "haproxy")
        self.wait(self.front)

    @property
    def url(self):
        """Where clients ask."""
        return f"http://127.0.0.1:{self.front}"

    def fake(self, *words):
        process = subprocess.Popen([self.tidegate, *words], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process.stdout.readline().strip()

    def spawn(self, command, name, **more):
        with open(self.log(name), "a") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, **more)
        self.processes.append(process)
        return process

    def log(self, name):
        return os.path.join(self.folder, f"{name}.log")

    def start(self, at, secret=SECRET, peer_url=None):
        path = os.path.join(self.folder, f"{NAMES[at]}.yaml")
        url = peer_url or f"http://127.0.0.1:{self.peers[at]}"
        with open(path, "w") as file:
            file.write(
                f"listen: 127.0.0.1:{self.ports[at]}\n"
                f"admin: {{listen: '127.0.0.1:{self.admins[at]}'}}\n"
                "shutdown: {drain: 10s}\n"
                "health: {probe: {every: 0s}}\n"
                f"providers: {{fake: {{api: openai, url: '{self.provider_url}/v1'}}}}\n"
                "routes: {chat: {tiers: [[fake/m]]}}\n"
                "mcp: {session: {max: 1000}, servers: {counter: {url: '%s'}}}\n"
                "state:\n"
                "  redis: env:FLEET_REDIS\n"
                "  secret: env:FLEET_SECRET\n"
                "  replica: %s\n"
                "  peer_listen: 127.0.0.1:%d\n"
                "  peer_url: %s\n" % (self.server_url, NAMES[at], self.peers[at], url))
        env = dict(os.environ, FLEET_REDIS=f"redis://127.0.0.1:{self.redis_port}",
                   FLEET_SECRET=secret)
        # Another version beside: the first replica may be another binary.
        binary = os.environ.get("FLEET_BESIDE") if at == 0 else None
        command = [binary or self.tidegate, "serve", "--config", path]
        self.replicas[at] = self.spawn(command, NAMES[at], env=env)
        self.wait(self.ports[at])

    def wait(self, port):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                url = f"http://127.0.0.1:{port}/ready"
                if httpx2.get(url, trust_env=False, timeout=2).status_code == 200:
                    return
            except httpx2.HTTPError:
                pass
            time.sleep(0.1)
        raise SystemExit(f"port {port} does not serve: see {self.folder}")

    def kill(self, at):
        process, self.replicas[at] = self.replicas[at], None
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self, at):
        process, self.replicas[at] = self.replicas[at], None
        process.send_signal(signal.SIGTERM)
        return process

    def moves(self, since):
        """The epochs of sessions that were taken over, by what logs say after those lengths."""
        epochs = []
        for name in NAMES:
            with open(self.log(name)) as file:
                file.seek(since.get(name, 0))
                taken = [line for line in file if "took a session over" in line]
            epochs += [int(line.split("epoch=")[1].split()[0]) for line in taken]
        return epochs

    def lengths(self):
        return {name: os.path.getsize(self.log(name)) for name in NAMES}

    def traffic(self):
        return store_traffic(self.redis_port)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
