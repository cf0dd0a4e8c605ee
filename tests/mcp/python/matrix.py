"""Python's part of the matrix: every client at every server, without a gateway and through one.

Writes one line of JSON for each cell; whether that is good is judged where all parts are known.
"""

import asyncio
import faulthandler
import json
import logging
import os
import sys
import warnings
from pathlib import Path

from cells import Cells, LONG_S
from clients import GATEWAY, STATELESS, fast, official, session
from places import Place

RUN_S = 280
CLIENTS = {
    "Python `mcp`, sessions": session,
    "Python `mcp`": official("auto"),
    "FastMCP, sessions": fast("legacy"),
    "FastMCP": fast("auto"),
}
SCENE = json.loads(Path(os.environ["MATRIX"]).read_text())
COLUMNS = list(Cells(None, {}, "").columns())


async def tried(way, client, server, opened, key, place, prefix):
    """One client at one server; a record for each column."""
    about = SCENE["servers"][server]
    does = {**SCENE["does"][about["does"]], **about.get("but", {})}
    row = {"way": way, "client": client, "server": server}
    done = {}
    try:
        async with asyncio.timeout(3 * LONG_S):
            async with opened(key=key, at=place) as one:
                is_own = (one.version >= STATELESS) == one.is_stateless
                assert way == "direct" or is_own, one.version
                for column, work in Cells(one, does, prefix).columns().items():
                    done[column] = await outcome(work())
    except Exception as error:
        # Whatever was not reached cannot be done either.
        failed = f"not met: {words(error)}"
        done = {column: done.get(column, failed) for column in COLUMNS}
    return [{**row, "column": column, "failed": failed} for column, failed in done.items()]


async def outcome(work):
    """None, or why it failed."""
    try:
        async with asyncio.timeout(LONG_S + 10):
            await work
    except Exception as error:
        return words(error)
    return None


def words(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:300]


async def main():
    servers = SCENE["servers"]
    with open(os.environ["CELLS"], "a") as out:
        for client, opened in CLIENTS.items():
            direct, through = [], []
            for name, it in servers.items():
                place = Place(it.get("http"), it.get("sse"), it.get("command"))
                direct.append(tried("direct", client, name, opened, None, place, ""))
                key = it["key"]
                through.append(
                    tried("gateway", client, name, opened, key, GATEWAY, f"{name}_")
                )
            # One way after the other: what one client does to a server others could hear.
            for way in (direct, through):
                for records in await asyncio.gather(*way):
                    out.writelines(json.dumps(record) + "\n" for record in records)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(RUN_S, exit=True)
    warnings.simplefilter("ignore")
    # What the clients say of servers they do not understand is in the records.
    logging.disable()
    sys.exit(asyncio.run(main()))
