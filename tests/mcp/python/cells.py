"""What a client does with a server for each column of the matrix, and how the outcome is judged.

A server that has nothing made for a column is asked its plain tool, and found to have none. So no
list says who can do what: it is tried.
"""

import asyncio

# Something that a server is made for may take this long on a busy machine.
LONG_S = 20
# What would come with the answer of a plain tool comes at once, if at all.
SHORT_S = 0.3


class Cells:
    """One open client at one server."""

    def __init__(self, client, does, prefix):
        self.client = client
        self.does = does
        self.prefix = prefix

    def tool(self, column):
        """The tool of a column, its arguments, and how long it may take until something comes."""
        if column in self.does:
            return *self.does[column][:2], LONG_S
        return *self.does["call"][:2], SHORT_S

    async def call(self, name, arguments, progress=None):
        result = await self.client.call(self.prefix + name, arguments, progress)
        text = "\n".join(it.text for it in result.content if it.type == "text")
        assert not result.is_error, text
        return text

    async def after(self, column):
        """Leaves a server as it was found."""
        if f"after_{column}" in self.does:
            await self.call(*self.does[f"after_{column}"])

    async def list(self):
        names = [it.name for it in await self.client.tools()]
        assert self.prefix + self.does["call"][0] in names, names

    async def plain(self):
        name, arguments, says = self.does["call"]
        text = await self.call(name, arguments)
        assert says in text, text

    async def progress(self):
        heard = []

        async def progressed(progress, *_):
            heard.append(progress)

        name, arguments, _ = self.tool("progress")
        await self.call(name, arguments, progressed)
        assert heard, "no progress is reported"
        assert heard == sorted(heard) and len(heard) <= 3, heard

    async def cancel(self):
        started = []

        async def progressed(progress, *_):
            started.append(progress)

        name, arguments, limit_s = self.tool("cancel")
        call = asyncio.create_task(self.call(name, arguments, progressed))
        await until(lambda: started or call.done(), limit_s, "no progress")
        assert not call.done(), "it ends by itself"
        call.cancel()
        done, _ = await asyncio.wait({call}, timeout=LONG_S)
        assert done and call.cancelled(), call
        await self.plain()

    async def list_changed(self):
        name, arguments, limit_s = self.tool("list_changed")
        async with self.client.hearing():
            # What a server says while it is being met is none of it.
            await self.plain()
            self.client.ears.changed.clear()
            await self.call(name, arguments)
            try:
                await until(lambda: self.client.ears.changed, limit_s, "no change of a list")
            finally:
                await self.after("list_changed")

    async def asking(self):
        for name, arguments, says, kind in self.does.get("asking", [[*self.does["call"], "?"]]):
            self.client.ears.asked.clear()
            text = await self.call(name, arguments)
            assert says in text, text
            asked = [asked for asked, _ in self.client.ears.asked]
            assert kind in asked, f"nothing is asked: {asked}"

    async def subscription(self):
        name, arguments, limit_s = self.tool("subscription")
        uri = self.does.get("uri", "none://at/all")
        async with self.client.hearing([uri]):
            self.client.ears.updated.clear()
            await self.call(name, arguments)
            try:
                await until(lambda: self.client.ears.updated, limit_s, "no update of a resource")
            finally:
                await self.after("subscription")
            assert set(self.client.ears.updated) == {uri}, self.client.ears.updated

    def columns(self):
        return {
            "list": self.list,
            "call": self.plain,
            "progress": self.progress,
            "cancel": self.cancel,
            "list_changed": self.list_changed,
            "asking": self.asking,
            "subscription": self.subscription,
        }


async def until(what, limit_s, otherwise):
    end = asyncio.get_running_loop().time() + limit_s
    while not what():
        assert asyncio.get_running_loop().time() < end, f"{otherwise} is told"
        await asyncio.sleep(0.02)
