"""Three replicas behind HAProxy, round robin, with the official Python and TypeScript MCP clients.

    sessions.py TIDEGATE NODE_FOLDER

prints one line per claim and ends with 1 if one of them does not hold.
"""

import asyncio
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from bed import NAMES, OTHER_SECRET, Fleet

# The client's library logs what arrives while its session is being closed.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
logging.getLogger("client").setLevel(logging.CRITICAL)

SESSIONS = 50
CALLS = 1000
passed = failed = 0


def claim(is_so, what):
    global passed, failed
    if is_so:
        passed += 1
    else:
        failed += 1
    print(f"{'ok  ' if is_so else 'FAIL'} {what}", flush=True)


def show(troubles):
    for it in troubles[:3]:
        print("    ", repr(it)[:300])


@asynccontextmanager
async def opened(url):
    """A session and, once it is open, its id."""
    seen = {}

    async def note(response):
        if "mcp-session-id" in response.headers:
            seen.setdefault("name", response.headers["mcp-session-id"])

    timeout = httpx2.Timeout(30, read=300)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    client = httpx2.AsyncClient(event_hooks={"response": [note]}, timeout=timeout,
                                limits=limits, trust_env=False)
    async with client, streamable_http_client(f"{url}/mcp", http_client=client) as it:
        async with ClientSession(it[0], it[1]) as session:
            await session.initialize()
            yield session, seen["name"]


async def count(session):
    result = await session.call_tool("count", {})
    return result.content[0].text, result.is_error


async def in_sessions(fleet, number, work):
    """So many sessions at once, each doing its work; what each came to, and what broke."""
    async def one(at):
        async with opened(fleet.url) as (session, _):
            return await work(session, at)
    ended = await asyncio.gather(*(one(at) for at in range(number)), return_exceptions=True)
    broken = [it for it in ended if isinstance(it, BaseException)]
    show(broken)
    return [it for it in ended if not isinstance(it, BaseException)], broken


async def round_robin(fleet):
    async def work(session, _at):
        wrong = 0
        for call in range(1, CALLS // SESSIONS + 1):
            text, is_error = await count(session)
            wrong += is_error or not text.endswith(f"call {call}")
        return wrong

    began = time.monotonic()
    results, broken = await in_sessions(fleet, SESSIONS, work)
    took = time.monotonic() - began
    claim(not broken and sum(results) == 0,
          f"python: {CALLS} calls in {SESSIONS} sessions, round robin over 3 replicas: "
          f"{len(broken)} sessions broken, {sum(results)} calls failed ({took:.1f} s)")


async def traffic(fleet):
    """What 1 000 LLM requests of 100 conversations cost the store, beside heartbeats."""
    body = {"model": "chat", "messages": [{"role": "user", "content": "good morning"}]}

    async def talk(client, session):
        for _ in range(10):
            headers = {"x-tidegate-session": f"conversation-{session}"}
            answer = await client.post(f"{fleet.url}/v1/chat/completions", json=body,
                                       headers=headers)
            answer.raise_for_status()

    began, before = time.monotonic(), fleet.traffic()
    limits = httpx2.Limits(max_connections=10)
    async with httpx2.AsyncClient(trust_env=False, timeout=60, limits=limits) as client:
        await asyncio.gather(*(talk(client, session) for session in range(100)))
    # What is told at leisure has been told then.
    await asyncio.sleep(2)
    took, busy = time.monotonic() - began, fleet.traffic()
    await asyncio.sleep(took)
    idle = fleet.traffic()
    cost = [2 * b - a - c for a, b, c in zip(before, busy, idle)]
    print(f"     the store: {cost[0]} commands, {cost[1] / 1000:.0f} kB in and "
          f"{cost[2] / 1000:.0f} kB out for 1000 LLM requests in 100 conversations, beside "
          f"{(idle[0] - busy[0]) / took:.0f} commands a second of three idle replicas", flush=True)
    claim(cost[0] < 1000, "fewer than one command of the store per LLM request")


def node(fleet, folder):
    program = os.path.join(folder, "sessions.mjs")
    ran = subprocess.run(["node", program, f"{fleet.url}/mcp", str(SESSIONS), str(CALLS)],
                         capture_output=True, text=True, timeout=300)
    if ran.returncode != 0:
        print("    ", ran.stderr.strip()[-300:])
    claim(ran.returncode == 0, f"node: {ran.stdout.strip()}")


async def one_is_killed(fleet):
    """Half of the sessions have a slow call under way when a replica is killed."""
    ready, go_on = [], asyncio.Event()

    async def work(session, at):
        tool = "slow" if at % 2 else "count"
        await count(session)
        under_way = asyncio.create_task(session.call_tool(tool, {}))
        await asyncio.sleep(0.3)
        ready.append(at)
        await go_on.wait()
        try:
            result = await asyncio.wait_for(under_way, 20)
            ended = result.content[0].text if result.is_error else None
        except Exception as error:
            # Whoever it had asked is dead, and nobody can say it by name.
            ended = f"connection: {error!r}"
        after = [await asyncio.wait_for(count(session), 20) for _ in range(6)]
        return ended, sum(it[1] for it in after)

    async def killer():
        until = time.monotonic() + 30
        while len(ready) < 30 and time.monotonic() < until:
            await asyncio.sleep(0.05)
        fleet.kill(0)
        go_on.set()

    (results, broken), _ = await asyncio.gather(in_sessions(fleet, 30, work), killer())
    ended = [it[0] for it in results if it[0]]
    by_name = [it for it in ended if "result is unknown" in it or "unavailable" in it]
    others = [it for it in ended if it not in by_name and not it.startswith("connection")]
    show(others)
    wrong = sum(it[1] for it in results)
    claim(not broken and wrong == 0 and not others,
          f"python: one of three killed with -9: of 15 calls under way {len(by_name)} ended by name "
          f"and {len(ended) - len(by_name)} with their connection, {len(broken)} of 30 sessions "
          f"lost, {wrong} of 180 later calls failed")
    fleet.start(0)


async def rolling(fleet):
    """Every replica is stopped and started again while clients call and chat."""
    stop = asyncio.Event()
    since = fleet.lengths()

    async def work(session, _at):
        made = failures = 0
        while not stop.is_set():
            text, is_error = await asyncio.wait_for(count(session), 30)
            made += 1
            if is_error or not text.endswith(f"call {made}"):
                failures += 1
                show([text])
            await asyncio.sleep(0.02)
        return made, failures

    async def chats(client, is_stream):
        made, troubles = 0, []
        body = {"model": "chat", "stream": is_stream,
                "messages": [{"role": "user", "content": "good morning"}]}
        while not stop.is_set():
            made += 1
            try:
                answer = await client.post(f"{fleet.url}/v1/chat/completions", json=body)
                is_whole = not is_stream or "[DONE]" in answer.text
                if answer.status_code != 200 or not is_whole:
                    troubles.append((answer.status_code, answer.text[-200:]))
            except httpx2.HTTPError as error:
                troubles.append(repr(error))
        return made, troubles

    async def restarts():
        await asyncio.sleep(1)
        for at in range(3):
            process = fleet.stop(at)
            while process.poll() is None:
                await asyncio.sleep(0.05)
            await asyncio.to_thread(fleet.start, at)
            await asyncio.sleep(1)
        stop.set()

    async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        (results, broken), *chatted, _ = await asyncio.gather(
            in_sessions(fleet, 20, work), *(chats(client, at % 2 == 0) for at in range(8)),
            restarts())
    made, failures = sum(it[0] for it in results), sum(it[1] for it in results)
    claim(not broken and failures == 0,
          f"python: rolling restart of all three under load: {made} calls, {failures} failed, "
          f"{len(broken)} of 20 sessions lost")
    asked = sum(it[0] for it in chatted)
    troubles = [it for one in chatted for it in one[1]]
    show(troubles)
    claim(not troubles, f"and meanwhile {asked} LLM requests, {len(troubles)} failed")
    epochs = fleet.moves(since)
    # The first owner has epoch 1, and each restart may add one.
    claim(epochs and max(epochs) <= 4,
          f"sessions moved {len(epochs)} times, none more than {max(epochs, default=1) - 1} "
          "times: at most once per replica")


async def bad_peers(fleet):
    """A wrong secret, a url that leads elsewhere, and garbage at the peer port."""
    with socket.create_connection(("127.0.0.1", fleet.peers[0])) as it:
        it.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        it.settimeout(10)
        claim(it.recv(100) == b"", "garbage at the peer port is closed without a word")
    fleet.stop(2).wait()
    fleet.start(2, peer_url=f"http://127.0.0.1:{fleet.peers[1]}")
    until, warned = time.monotonic() + 20, False
    while time.monotonic() < until and not warned:
        with open(fleet.log(NAMES[2])) as file:
            warned = "another replica answers" in file.read()
        await asyncio.sleep(0.2)
    claim(warned, "a `peer_url` that leads to another replica is warned of at start")
    fleet.stop(2).wait()
    fleet.start(2, secret=OTHER_SECRET)
    async with opened(f"http://127.0.0.1:{fleet.ports[0]}") as (session, name):
        await count(session)
        ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
        headers = {"mcp-session-id": name, "accept": "application/json, text/event-stream"}
        own = f"http://127.0.0.1:{fleet.ports[2]}/mcp"
        answer = httpx2.post(own, json=ping, headers=headers, trust_env=False)
        claim(answer.status_code == 404, "a replica with another secret knows no session of ours")
        text, _ = await count(session)
        claim(text.endswith("call 2"), "and takes none")


async def main(tidegate, node_folder):
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(tidegate, folder)
        try:
            await traffic(fleet)
            await round_robin(fleet)
            node(fleet, node_folder)
            await one_is_killed(fleet)
            await rolling(fleet)
            await bad_peers(fleet)
        finally:
            fleet.end()
            if failed:
                kept = tempfile.mkdtemp(prefix="fleet-logs-")
                shutil.copytree(folder, kept, dirs_exist_ok=True)
                print(f"logs are in {kept}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:3])))
