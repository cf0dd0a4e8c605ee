"""FastMCP as a proxy: `fastmcp_proxy.py UPSTREAM PORT`.

One connected client for all sessions. By default it would open a session with the server for every
call, which costs it many times as much.
"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.server import create_proxy


async def main():
    async with Client(sys.argv[1], mode="legacy") as client:
        await create_proxy(client).run_async(
            transport="http",
            host="127.0.0.1",
            port=int(sys.argv[2]),
            show_banner=False,
            log_level="error",
        )


asyncio.run(main())
