"""`tools: search` over three real servers: every client finds and calls; servers die and return.

Prints the sum in the form `cargo xtask` adds up. A run that hangs ends itself.
"""

import asyncio
import faulthandler
import os
import signal
import sys
import warnings
from pathlib import Path

from clients import CLIENTS
from run import RUN_S, Sum
from scene import AT_ONCE_S, FILES, LIMIT_S, REMOTE
from steps import text_of

SWITCH = Path(os.environ["SWITCH"])

# What is looked for, the name that has to be found, arguments for it, and what it then says.
WISHES = {
    "everything": ("echo a message back to me", "everything_echo", {"message": "ahoy"}, "ahoy"),
    "files": (
        "read the contents of a text file",
        "files_read_text_file",
        {"path": str(FILES / "tide.txt")},
        "high water at noon",
    ),
    "time": (
        "what time is it now in a timezone",
        "time_get_current_time",
        {"timezone": "UTC"},
        "UTC",
    ),
}


class Programme:
    """A server that is a program of the gateway's."""

    def __init__(self, name):
        self.name = name

    def kill(self):
        (SWITCH / f"{self.name}.down").touch()
        try:
            os.kill(int((SWITCH / f"{self.name}.pid").read_text()), signal.SIGKILL)
        except ProcessLookupError:
            pass

    def start(self):
        (SWITCH / f"{self.name}.down").unlink(missing_ok=True)


SERVERS = {"everything": REMOTE, "files": Programme("files"), "time": Programme("time")}


async def found(client, server, within=LIMIT_S):
    """What a search for a server's tool answers, and that tool in it.

    The first of a session waits for programs that are starting.
    """
    words, name, _, _ = WISHES[server]
    async with asyncio.timeout(within):
        result = await client.call("find_tool", {"tool_description": words, "limit": 5})
    assert not result.is_error, result
    answer = result.structured_content
    return answer, next((it for it in answer["tools"] if it["name"] == name), None)


async def called(client, server):
    _, name, arguments, _ = WISHES[server]
    return await client.call("call_tool", {"tool_name": name, "parameters": arguments})


async def sees_two_tools(client):
    assert sorted(it.name for it in await client.tools()) == ["call_tool", "find_tool"]


async def finds_and_calls_tools_of_all_servers(client):
    for server, (_, _, _, says) in WISHES.items():
        _, tool = await found(client, server)
        assert tool is not None and tool["available"] is True, (server, tool)
        assert tool["server"] == server, tool
        result = await called(client, server)
        assert not result.is_error and says in text_of(result), result


async def sees_a_dead_server_marked_and_later_sessions_without_it(client, opened):
    # From here on the session has all of them.
    await finds_and_calls_tools_of_all_servers(client)
    for server, process in SERVERS.items():
        process.kill()
        try:
            await is_known_to_be_down(client, server)
            await is_marked(client, server)
            async with opened() as other:
                _, tool = await found(other, server)
                assert tool is None, (server, tool)
        finally:
            process.start()
        await is_found_again(opened, server)


async def finds_nothing_with_every_server_down_and_is_told_why(client, opened):
    for process in SERVERS.values():
        process.kill()
    try:
        for server in SERVERS:
            await is_known_to_be_down(client, server)
        async with opened() as other:
            for server in SERVERS:
                answer, _ = await found(other, server, within=AT_ONCE_S)
                assert answer["tools"] == [], answer
                assert answer["hint"].startswith("No server is available"), answer
    finally:
        for process in SERVERS.values():
            process.start()
    for server in SERVERS:
        await is_found_again(opened, server)


async def is_known_to_be_down(client, server):
    """The death of a program may be noticed by a call, and the call says whose it was."""
    async with asyncio.timeout(LIMIT_S):
        while not (result := await called(client, server)).is_error:
            await asyncio.sleep(0.05)
    assert f'backend "{server}"' in text_of(result), result


async def is_marked(client, server):
    """Between two starts of a program there is a moment in which it may come up."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            _, tool = await found(client, server)
            assert tool is not None, server
            if tool["available"] is False:
                return
            await asyncio.sleep(0.05)


async def is_found_again(opened, server):
    async with asyncio.timeout(LIMIT_S):
        while True:
            async with opened() as client:
                _, tool = await found(client, server)
                if tool is not None and tool["available"]:
                    return
            await asyncio.sleep(0.2)


async def main():
    total = Sum()
    with REMOTE:
        for name, opened in CLIENTS.items():
            # The gateway was there first, and has found one of its servers missing.
            for server in SERVERS:
                await is_found_again(opened, server)
            async with opened() as client:
                for step in (sees_two_tools, finds_and_calls_tools_of_all_servers):
                    await total.claim(f"{name} {step.__name__.replace('_', ' ')}", step(client))
        name, opened = next(iter(CLIENTS.items()))
        async with opened() as client:
            for step in (
                sees_a_dead_server_marked_and_later_sessions_without_it,
                finds_nothing_with_every_server_down_and_is_told_why,
            ):
                await total.claim(f"{name} {step.__name__.replace('_', ' ')}", step(client, opened))
    word = "FAILED" if total.failed else "ok"
    print(f"test result: {word}. {total.passed} passed; {total.failed} failed;")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    faulthandler.dump_traceback_later(RUN_S, exit=True)
    warnings.simplefilter("ignore")
    sys.exit(asyncio.run(main()))
