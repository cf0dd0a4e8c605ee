"""What a desktop client notices: it starts `tidegate mcp` and talks to it over pipes.

Every client is shown the same claims twice: with a gateway that runs already, and with one that
`tidegate mcp` runs itself by the same config.
"""

import asyncio
import faulthandler
import os
import sys
import traceback
from contextlib import asynccontextmanager

import fastmcp
from fastmcp.client.transports import StdioTransport
from mcp import ClientSession, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

from scene import KEY, LIMIT_S, NARROW_KEY, tools
from steps import text_of

RUN_S = 280
BINARY = os.environ["TIDEGATE_BINARY"]
CONFIG = os.environ["TIDEGATE_CONFIG"]
SESSIONS = "2025-11-25"
STATELESS = "2026-07-28"


def parameters(where, key=KEY):
    """As a desktop client's config has it."""
    env = {"TIDEGATE_KEY": key, "PATH": os.environ["PATH"]}
    if where == "a gateway":
        return {"command": BINARY, "args": ["mcp", "--url", os.environ["TIDEGATE_URL"]], "env": env}
    # A gateway of its own resolves the secrets of the config.
    env |= {"TIDEGATE_MCP_KEY": KEY, "TIDEGATE_MCP_NARROW_KEY": NARROW_KEY}
    return {"command": BINARY, "args": ["mcp", "--config", CONFIG], "env": env}


@asynccontextmanager
async def session(where, **how):
    """`mcp.ClientSession`: the sessions' era only."""
    server = StdioServerParameters(**parameters(where, **how))
    async with stdio_client(server) as streams, ClientSession(*streams[:2]) as opened:
        await opened.initialize()
        yield opened


def official(mode):
    @asynccontextmanager
    async def opened(where, **how):
        server = StdioServerParameters(**parameters(where, **how))
        async with Client(stdio_client(server), mode=mode) as it:
            yield it

    return opened


def fast(mode):
    @asynccontextmanager
    async def opened(where, **how):
        transport = StdioTransport(**parameters(where, **how), keep_alive=False)
        async with fastmcp.Client(transport, mode=mode) as it:
            yield it

    return opened


CLIENTS = {
    "mcp ClientSession": (session, SESSIONS),
    "mcp Client": (official("auto"), STATELESS),
    "mcp Client, legacy": (official("legacy"), SESSIONS),
    "fastmcp": (fast("auto"), STATELESS),
    "fastmcp, legacy": (fast("legacy"), SESSIONS),
}


async def names_of(client):
    listed = await client.list_tools()
    return sorted(tool.name for tool in getattr(listed, "tools", listed))


async def call(client, name, arguments, progress=None):
    if isinstance(client, fastmcp.Client):
        return await client.call_tool_mcp(name, arguments, progress_handler=progress)
    return await client.call_tool(name, arguments, progress_callback=progress)


async def speaks_its_version(client, version):
    assert client.protocol_version == version, client.protocol_version


async def is_offered_the_tools_of_all_servers(client, _version):
    async with asyncio.timeout(LIMIT_S):
        # Without sessions nobody waits for servers that are still starting.
        while await names_of(client) != tools("everything", "time", asking=False):
            await asyncio.sleep(0.1)


async def calls_a_tool_of_each_server(client, _version):
    echo = await call(client, "everything_echo", {"message": "ahoy ⚓"})
    assert text_of(echo) == "Echo: ahoy ⚓", echo
    now = await call(client, "time_get_current_time", {"timezone": "UTC"})
    assert "UTC" in text_of(now), now


async def follows_progress_in_order(client, _version):
    heard = []

    async def progress(done, _total, _message):
        heard.append(done)

    arguments = {"duration": 0.5, "steps": 5}
    await call(client, "everything_trigger-long-running-operation", arguments, progress)
    assert heard == [1, 2, 3, 4, 5], heard


async def makes_many_calls_at_once(client, _version):
    async def one(number):
        result = await call(client, "everything_echo", {"message": str(number)})
        assert text_of(result) == f"Echo: {number}", result

    await asyncio.gather(*(one(number) for number in range(20)))


async def is_told_what_is_wrong(client, _version):
    try:
        await call(client, "everything_eco", {})
    except Exception as refusal:
        assert "did you mean `everything_echo`" in str(refusal), refusal
    else:
        raise AssertionError("not refused")


STEPS = [
    speaks_its_version,
    is_offered_the_tools_of_all_servers,
    calls_a_tool_of_each_server,
    follows_progress_in_order,
    makes_many_calls_at_once,
    is_told_what_is_wrong,
]


async def with_a_narrow_key_sees_its_server_only(opened, where):
    async with opened(where, key=NARROW_KEY) as client:
        assert await names_of(client) == tools("time", asking=False)


class Sum:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    async def claim(self, name, work):
        try:
            async with asyncio.timeout(2 * LIMIT_S):
                await work
        except Exception:
            self.failed += 1
            print(f"{name} ... FAILED\n{traceback.format_exc()}", flush=True)
        else:
            self.passed += 1
            print(f"{name} ... ok", flush=True)


async def shown(total, name, where):
    opened, version = CLIENTS[name]
    async with opened(where) as client:
        for step in STEPS:
            words = step.__name__.replace("_", " ")
            await total.claim(f"{name} over pipes to {where} {words}", step(client, version))


async def main():
    total = Sum()
    for where in ("a gateway", "its own"):
        for name in CLIENTS:
            opens = f"{name} over pipes to {where} opens and closes"
            await total.claim(opens, shown(total, name, where))
        narrow = with_a_narrow_key_sees_its_server_only(session, where)
        await total.claim(f"a narrow key over pipes to {where}", narrow)
    word = "FAILED" if total.failed else "ok"
    print(f"test result: {word}. {total.passed} passed; {total.failed} failed;")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    faulthandler.dump_traceback_later(RUN_S, exit=True)
    sys.exit(asyncio.run(main()))
