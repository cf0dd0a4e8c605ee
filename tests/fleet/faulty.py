"""A way to the store that can be slow or lie.

    faulty.py PORT

prints the port that it listens at, and then does what the lines of its stdin say: `pass`, `slow`
(every answer two seconds late), `garbage`. It ends with its stdin.
"""

import asyncio
import sys

SLOW = 2.0
GARBAGE = b"HTTP/1.1 400 Bad Request\r\n\r\n$$$ *9\r\n-what\r\n"
mode = "pass"


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
        try:
            there = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(carry(reader, there[1], False), carry(there[0], writer, True))

    global mode
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        mode = line.strip()
        print(mode, flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
