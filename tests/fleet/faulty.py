"""A way to the store that can be slow, lie or be cut.

    faulty.py PORT

prints the port that it listens at, and then does what the lines of its stdin say: `pass`, `slow`
(every answer two seconds late), `garbage`, `cut` (no connection stands, none is taken). It ends with
its stdin.
"""

import asyncio
import sys

SLOW = 2.0
GARBAGE = b"HTTP/1.1 400 Bad Request\r\n\r\n$$$ *9\r\n-what\r\n"
mode = "pass"
standing = set()


async def carry(reader, writer, is_answer):
    try:
        while data := await reader.read(65536):
            if is_answer and mode == "garbage":
                data = GARBAGE
            if is_answer and mode == "slow":
                await asyncio.sleep(SLOW)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def main(port):
    async def accept(reader, writer):
        if mode == "cut":
            writer.close()
            return
        try:
            there = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        standing.update((writer, there[1]))
        await asyncio.gather(carry(reader, there[1], False), carry(there[0], writer, True))
        standing.difference_update((writer, there[1]))

    global mode
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        mode = line.strip()
        for writer in standing if mode == "cut" else ():
            writer.close()
        print(mode, flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
