"""The official clients behind one face, so that every one of them is asked the same.

Each is opened as a user opens it: a url and a key, the gateway's unless another place is named. A
client that can be asked things (sampling, elicitation, roots) answers them at once and remembers
that it was asked.
"""

from contextlib import asynccontextmanager

import fastmcp
import mcp_types as types
from mcp import ClientSession
from mcp.client import Client
from mcp.client.subscriptions import listen

from places import Place
from scene import KEY, URL

ROOT = "file:///harbour"
SAMPLE = "the tide is high"
ELICITED = {"name": "Ada", "check": True}

GATEWAY = Place(http=URL)
# Revisions are dates; from this one on there are no sessions.
STATELESS = "2026-07-28"

LIST_CHANGED = (types.ToolListChangedNotification, types.ResourceListChangedNotification)


class Ears:
    """What a client heard that it did not ask for."""

    def __init__(self):
        self.logs = []
        self.updated = []
        self.changed = []
        self.asked = []

    async def on_log(self, params):
        self.logs.append(params)

    async def on_message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))
        if isinstance(message, LIST_CHANGED):
            self.changed.append(message)

    async def on_sampling(self, _context, params):
        self.asked.append(("sampling", params))
        content = types.TextContent(type="text", text=SAMPLE)
        return types.CreateMessageResult(role="assistant", content=content, model="tide-1")

    async def on_elicitation(self, _context, params):
        self.asked.append(("elicitation", params))
        return types.ElicitResult(action="accept", content=ELICITED)

    async def on_roots(self, _context):
        self.asked.append(("roots", None))
        return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="harbour")])

    def callbacks(self, is_able):
        callbacks = {"logging_callback": self.on_log, "message_handler": self.on_message}
        if is_able:
            callbacks["sampling_callback"] = self.on_sampling
            callbacks["elicitation_callback"] = self.on_elicitation
            callbacks["list_roots_callback"] = self.on_roots
        return callbacks


class Official:
    """`mcp.ClientSession` or `mcp.Client`: their methods are called alike."""

    def __init__(self, client, ears, mode="legacy"):
        self.client = client
        self.ears = ears
        # The gateway speaks both eras, so a client that tries the stateless one first stays there.
        self.is_stateless = mode == "auto"

    version = property(lambda self: self.client.protocol_version)
    info = property(lambda self: self.client.server_info)
    instructions = property(lambda self: self.client.instructions)

    async def all(self, ask, pick):
        """Every page of a list."""
        items, cursor = [], None
        while True:
            page = await ask(cursor)
            items += pick(page)
            cursor = page.next_cursor
            if cursor is None:
                return items

    async def tools(self):
        return await self.all(self._page(self.client.list_tools), lambda it: it.tools)

    async def resources(self):
        return await self.all(self._page(self.client.list_resources), lambda it: it.resources)

    async def templates(self):
        ask = self._page(self.client.list_resource_templates)
        return await self.all(ask, lambda it: it.resource_templates)

    async def prompts(self):
        return await self.all(self._page(self.client.list_prompts), lambda it: it.prompts)

    def _page(self, method):
        if isinstance(self.client, ClientSession):
            return lambda cursor: method(params=types.PaginatedRequestParams(cursor=cursor))
        return lambda cursor: method(cursor=cursor)

    async def call(self, name, arguments, progress=None):
        return await self.client.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents

    async def subscribe(self, uri):
        await self.client.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await self.client.unsubscribe_resource(uri)

    @asynccontextmanager
    async def hearing(self, uris=()):
        """While it is open, changes of lists and of these resources are told."""
        if self.version >= STATELESS:
            one = self.client if isinstance(self.client, ClientSession) else self.client.session
            async with listen(
                one,
                tools_list_changed=True,
                resources_list_changed=True,
                resource_subscriptions=list(uris),
            ):
                yield
            return
        for uri in uris:
            await self.subscribe(uri)
        yield
        for uri in uris:
            await self.unsubscribe(uri)

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages

    async def complete(self, ref, argument, context=None):
        return (await self.client.complete(ref, argument, context)).completion.values

    async def level(self, level):
        await self.client.set_logging_level(level)

    async def ping(self):
        await self.client.send_ping()


class Fast(Official):
    """FastMCP's client, which has other methods; what it lacks its session has."""

    version = property(lambda self: self.client.protocol_version)
    info = property(lambda self: self.client.server_info)
    instructions = property(lambda self: self.client.instructions)

    async def tools(self):
        return await self.client.list_tools()

    async def resources(self):
        return await self.client.list_resources()

    async def templates(self):
        return await self.client.list_resource_templates()

    async def prompts(self):
        return await self.client.list_prompts()

    async def call(self, name, arguments, progress=None):
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress)

    async def read(self, uri):
        return await self.client.read_resource(uri)

    async def subscribe(self, uri):
        await self.client.session.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await self.client.session.unsubscribe_resource(uri)

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages

    async def complete(self, ref, argument, context=None):
        return (await self.client.complete(ref, argument, context)).values

    async def level(self, level):
        await self.client.set_logging_level(level)

    async def ping(self):
        assert await self.client.ping()


@asynccontextmanager
async def session(key=KEY, is_able=True, at=GATEWAY):
    """`mcp.ClientSession`: the sessions' era only."""
    ears = Ears()
    async with at.streams(key) as streams:
        async with ClientSession(*streams[:2], **ears.callbacks(is_able)) as opened:
            await opened.initialize()
            yield Official(opened, ears)


def official(mode):
    @asynccontextmanager
    async def opened(key=KEY, is_able=True, at=GATEWAY):
        ears = Ears()
        async with Client(at.streams(key), mode=mode, **ears.callbacks(is_able)) as it:
            yield Official(it, ears, mode)

    return opened


def fast(mode):
    @asynccontextmanager
    async def opened(key=KEY, is_able=True, at=GATEWAY):
        ears = Ears()

        async def sampled(_messages, params, context):
            return await ears.on_sampling(context, params)

        async def elicited(_message, _kind, params, context):
            return await ears.on_elicitation(context, params)

        async def rooted(context):
            return (await ears.on_roots(context)).roots

        able = {"sampling_handler": sampled, "elicitation_handler": elicited, "roots": rooted}
        async with fastmcp.Client(
            at.fast(key),
            mode=mode,
            log_handler=ears.on_log,
            message_handler=ears.on_message,
            **(able if is_able else {}),
        ) as it:
            yield Fast(it, ears, mode)

    return opened


CLIENTS = {
    "mcp ClientSession": session,
    # Tries the stateless era first.
    "mcp Client": official("auto"),
    "mcp Client, legacy": official("legacy"),
    "fastmcp": fast("auto"),
    "fastmcp, legacy": fast("legacy"),
}
