"""Where a client is led to: a url, or a program that speaks over its pipes."""

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from scene import LIMIT_S


@dataclass
class Place:
    """One of the three is given."""

    http: str | None = None
    sse: str | None = None
    command: list[str] | None = None

    @asynccontextmanager
    async def streams(self, key):
        """As `mcp` wants it."""
        if self.command is not None:
            program, *words = self.command
            wanted = StdioServerParameters(command=program, args=words)
            with open(os.devnull, "w") as nowhere:
                async with stdio_client(wanted, errlog=nowhere) as streams:
                    yield streams
        elif self.sse is not None:
            async with sse_client(self.sse, timeout=LIMIT_S) as streams:
                yield streams
        else:
            timeout = httpx2.Timeout(LIMIT_S, read=300)
            headers = {"authorization": f"Bearer {key}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as client,
                streamable_http_client(self.http, http_client=client) as streams,
            ):
                yield streams

    def fast(self, key):
        """As FastMCP wants it."""
        if self.command is not None:
            program, *words = self.command
            nowhere = open(os.devnull, "w")
            return StdioTransport(program, words, keep_alive=False, log_file=nowhere)
        if self.sse is not None:
            return SSETransport(self.sse)
        return StreamableHttpTransport(self.http, auth=key)
