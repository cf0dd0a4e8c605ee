"""What a fleet costs, and how quick it is: three replicas, a real store, no balancer.

    measure.py TIDEGATE [optimised] [reaction] [latency] [cpu]

prints one line per figure and ends with 1 if one of them is not met. Whatever is compared is
measured in one run, request by request in turn, so that a busy machine is busy for both. CPU time
is judged of an `optimised` build only: in that of the tests, dependencies are not.
"""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from bed import SECRET, free_port, store_says, store_traffic

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("one", "two", "three")
TURNS = 10  # of a conversation
AT_ONCE = 50  # conversations
BLOCKS = 10  # of requests to each gateway; the block in the middle counts
BLOCK = int(os.environ.get("FLEET_BLOCK", "400"))
CPU_REQUESTS = int(os.environ.get("FLEET_REQUESTS", "12000"))
ROUNDS = 40
DELAYS_MS = (25, 50, 100)
CHAT = {"model": "chat", "messages": [{"role": "user", "content": "good morning"}]}
failed = 0


def claim(is_so, what):
    global failed
    failed += not is_so
    print(f"{'ok  ' if is_so else 'FAIL'} {what}", flush=True)


def conversation(at):
    """Whose the request of this number is: so many at once, and every tenth request begins one."""
    place, turn = at % AT_ONCE, at // AT_ONCE
    return f"{place}-{(turn + place) // TURNS}"


class Connection:
    """A kept connection that asks one thing after another."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def chat(self, session, model="chat"):
        self.ask(session, model)
        self.answered()

    def ask(self, session, model="chat"):
        body = json.dumps(dict(CHAT, model=model)).encode()
        head = ("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                f"x-tidegate-session: {session}\r\ncontent-length: {len(body)}\r\n\r\n")
        self.socket.sendall(head.encode() + body)

    def answered(self):
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.more()
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if b"content-length" in fields:
            while len(rest) < int(fields[b"content-length"]):
                rest += self.more()
        else:
            while not rest.endswith(b"0\r\n\r\n"):
                rest += self.more()
        status = int(head.split(b" ", 2)[1])
        if status != 200:
            raise SystemExit(f"a request failed: {status} {rest[:300]}")

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise SystemExit("a gateway closed its connection")
        return data


class Bed:
    def __init__(self, tidegate, folder):
        self.tidegate, self.folder, self.processes = tidegate, folder, []
        self.redis_port = free_port()
        self.start_store()

    def spawn(self, name, command, **more):
        with open(os.path.join(self.folder, f"{name}.log"), "a") as log:
            more = dict(dict(stdout=log, stderr=log), **more)
            process = subprocess.Popen(command, **more)
        self.processes.append(process)
        return process

    def start_store(self):
        self.redis = self.spawn("redis", ["redis-server", "--port", str(self.redis_port), "--save",
                                          "", "--bind", "127.0.0.1", "--dir", self.folder])
        self.wait_port(self.redis_port)

    def fake(self):
        process = self.spawn("fake", [self.tidegate, "__fake"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        return process.stdout.readline().strip()

    def way(self):
        """A way to the store that can be slow, lie or be cut, and its port."""
        program = [sys.executable, os.path.join(HERE, "faulty.py"), str(self.redis_port)]
        process = self.spawn("faulty", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)
        return process, int(process.stdout.readline())

    def gateway(self, name, providers, routes, store_port=None):
        """Starts a gateway and waits until it serves, and has reached its store."""
        port, admin = free_port(), free_port()
        state = ("state: {redis: 'redis://127.0.0.1:%d', secret: env:FLEET_SECRET, replica: %s}\n"
                 % (store_port, name) if store_port else "")
        path = os.path.join(self.folder, f"{name}.yaml")
        with open(path, "w") as file:
            file.write(f"listen: 127.0.0.1:{port}\nadmin: {{listen: '127.0.0.1:{admin}'}}\n"
                       f"health: {{probe: {{every: 0s}}}}\n{providers}{routes}{state}")
        env = dict(os.environ, FLEET_SECRET=SECRET)
        process = self.spawn(name, [self.tidegate, "serve", "--threads", "1", "--config", path],
                             env=env)
        self.wait_port(port)
        if store_port:
            self.wait_line(name, "the fleet's store is there")
        return process, port

    def wait_port(self, port):
        self.wait(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None,
                  f"port {port} to serve")

    def wait_line(self, name, words):
        def is_there():
            with open(os.path.join(self.folder, f"{name}.log")) as file:
                return words in file.read()
        self.wait(is_there, f"`{words}` of {name}")

    def wait(self, is_so, what):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                if is_so():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"waited in vain for {what}")

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self.processes:
            process.wait()


def one_provider(url):
    return f"providers: {{fake: {{api: openai, url: '{url}/v1'}}}}\n", \
        "routes: {chat: {tiers: [[fake/m]]}}\n"


class Limited(http.server.BaseHTTPRequestHandler):
    """Says 429 with `Retry-After: 20`, and remembers when and to how many."""
    protocol_version = "HTTP/1.1"
    seen = {}

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.setdefault(body["model"], []).append(time.monotonic())
        self.send_response(429)
        self.send_header("retry-after", "20")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def reaction(bed):
    """From which moment after a 429 the other replicas send that key nothing."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Limited)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    number = ROUNDS * len(DELAYS_MS)
    providers = ("providers:\n"
                 f"  limited: {{api: openai, url: '{url}/v1'}}\n"
                 f"  spare: {{api: openai, url: '{bed.fake()}/v1'}}\n")
    routes = "routes:\n" + "".join(
        f"  r{at}: {{tiers: [[limited/m{at}], [spare/m]]}}\n" for at in range(number))
    gates = [Connection(bed.gateway(name, providers, routes, bed.redis_port)[1])
             for name in NAMES]
    late = dict.fromkeys(DELAYS_MS, 0)
    for at in range(number):
        delay = DELAYS_MS[at % len(DELAYS_MS)]
        first = at % 3
        gates[first].chat(f"s{at}", f"r{at}")
        met = Limited.seen[f"m{at}"][0]
        time.sleep(max(0, met + delay / 1000 - time.monotonic()))
        for other in range(3):
            if other != first:
                gates[other].chat(f"t{at}", f"r{at}")
        late[delay] += len(Limited.seen[f"m{at}"]) - 1
    server.shutdown()
    told = ", ".join(f"{late[delay]} of {2 * ROUNDS} from {delay} ms on" for delay in DELAYS_MS)
    claim(late[100] == 0, f"requests of the other two replicas that met the 429 again: {told}")


def quantile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def latency(bed):
    """LLM requests beside a store in trouble, against a gateway without one."""
    providers, routes = one_provider(bed.fake())
    way, way_port = bed.way()

    def set_way(mode):
        way.stdin.write(mode + "\n")
        way.stdin.flush()
        way.stdout.readline()

    gates = {"store": Connection(bed.gateway("with", providers, routes, way_port)[1]),
             "none": Connection(bed.gateway("without", providers, routes)[1]),
             "none too": Connection(bed.gateway("beside", providers, routes)[1])}
    order = list(gates)

    def block(what, number):
        times = {name: [] for name in gates}
        for at in range(number * BLOCK, (number + 1) * BLOCK):
            for turn in range(3):
                name = order[(at + turn) % 3]
                began = time.perf_counter()
                gates[name].chat(f"{what}-{conversation(at)}")
                times[name].append(1000 * (time.perf_counter() - began))
        return {name: quantile(all, 0.99) for name, all in times.items()}

    def measure(what):
        p99 = [block(what, number) for number in range(BLOCKS)]
        middle = lambda values: quantile(values, 0.5)
        store, none = (middle([it[name] for it in p99]) for name in ("store", "none"))
        ratio = middle([it["store"] / it["none"] for it in p99])
        chance = middle([it["none too"] / it["none"] for it in p99])
        claim(ratio <= 1.1, f"store {what}: p99 {store:.2f} ms, without a store {none:.2f} ms, "
              f"ratio {ratio:.3f} (of two without: {chance:.3f})")

    measure("well")
    bed.redis.send_signal(signal.SIGSTOP)
    measure("stopped")
    bed.redis.send_signal(signal.SIGCONT)
    time.sleep(1)
    set_way("slow")
    measure("slow by 2 s")
    set_way("garbage")
    measure("answering garbage")
    set_way("pass")
    # A replica that is not measured, and has a way of its own to the store.
    bed.gateway("other", providers, routes, bed.redis_port)
    set_way("cut")
    measure("cut off for this replica only")
    set_way("pass")
    store_says(bed.redis_port, b"CONFIG SET maxmemory-policy noeviction\r\nCONFIG SET maxmemory 1\r\n")
    measure("full")
    bed.redis.kill()
    bed.redis.wait()
    measure("killed")
    bed.start_store()
    measure("restarted empty")
    bed.wait_line("with", "lost its data")
    print("     and it was found again by itself", flush=True)


def cpu_seconds(processes):
    ticks = 0
    for process in processes:
        with open(f"/proc/{process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def cpu(bed):
    """Three with a store against three without: CPU time of the system and the program."""
    providers, routes = one_provider(bed.fake())
    fleets = {}
    for kind, port in (("with", bed.redis_port), ("without", None)):
        started = [bed.gateway(f"{kind}-{name}", providers, routes, port) for name in NAMES]
        fleets[kind] = [it[0] for it in started], [Connection(it[1]) for it in started]

    def ask(at):
        # A conversation goes from replica to replica.
        for kind in ("with", "without") if at % 2 else ("without", "with"):
            for replica, gate in enumerate(fleets[kind][1]):
                gate.ask(f"c-{conversation(3 * at + (replica + at) % 3)}")
        for _, gates in fleets.values():
            for gate in gates:
                gate.answered()

    def spent():
        return {kind: cpu_seconds(it[0]) for kind, it in fleets.items()}

    warm = TURNS * AT_ONCE // 3
    for at in range(warm):
        ask(at)
    # What is told at leisure has been told then.
    time.sleep(2)
    began, before, store = time.monotonic(), spent(), store_traffic(bed.redis_port)
    for at in range(warm, warm + CPU_REQUESTS // 3):
        ask(at)
    asked = time.monotonic() - began
    time.sleep(2)
    took, busy, store_busy = time.monotonic() - began, spent(), store_traffic(bed.redis_port)
    time.sleep(10)
    idle, store_idle = spent(), store_traffic(bed.redis_port)
    each = {kind: 1e6 * (busy[kind] - before[kind]) / CPU_REQUESTS for kind in fleets}
    rest = {kind: 100 * (idle[kind] - busy[kind]) / 10 for kind in fleets}
    ratio = each["with"] / each["without"]
    is_judged = "optimised" in sys.argv[2:]
    claim(ratio <= 1.05 or not is_judged, f"CPU per request of three replicas: {each['with']:.0f} us with a store, "
          f"{each['without']:.0f} us without, ratio {ratio:.3f}, goal 1.05"
          f"{'' if is_judged else ', not judged of this build'} ({CPU_REQUESTS} requests each in "
          f"{asked:.0f} s, one in {TURNS} of a new conversation)")
    print(f"     idle: {rest['with']:.2f} % of a core with a store, {rest['without']:.2f} % without")
    cost = [(b - a) - (c - b) * took / 10 for a, b, c in zip(store, store_busy, store_idle)]
    cost = [1000 * it / CPU_REQUESTS for it in cost]
    print(f"     the store, per 1000 requests: {cost[0]:.0f} commands, {cost[1] / 1000:.0f} kB in, "
          f"{cost[2] / 1000:.0f} kB out, beside {(store_idle[0] - store_busy[0]) / 10:.0f} commands "
          "a second of the idle fleet", flush=True)


def main(tidegate, wanted):
    parts = {"reaction": reaction, "latency": latency, "cpu": cpu}
    for name, part in parts.items():
        if wanted - {"optimised"} and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bed = Bed(tidegate, folder)
            try:
                part(bed)
            finally:
                bed.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], set(sys.argv[2:])))
