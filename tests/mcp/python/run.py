"""Shows every claim to every client and prints the sum in the form `cargo xtask` adds up.

One session per client: starting the programs of a session takes longer than all claims together. A
claim that fails does not stop the others. A run that hangs ends itself and prints where it hung.
"""

import asyncio
import faulthandler
import sys
import traceback
import warnings

import outage
from clients import CLIENTS
from scene import LIMIT_S, REMOTE
from steps import steps_of

RUN_S = 280


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


async def shown(total, name, opened):
    """All claims to one client."""
    async with opened() as client:
        for step in steps_of(client):
            await total.claim(f"{name} {step.__name__.replace('_', ' ')}", step(client))
        step = outage.keeps_its_session_while_a_server_is_down_and_back
        await total.claim(f"{name} {step.__name__.replace('_', ' ')}", step(client, opened))
    for step in (
        outage.that_cannot_be_asked_is_offered_fewer_tools,
        outage.with_a_narrow_key_sees_its_servers_only,
        outage.with_a_wrong_key_is_refused_and_told_so,
    ):
        await total.claim(f"{name} {step.__name__.replace('_', ' ')}", step(opened))


async def main():
    total = Sum()
    with REMOTE:
        REMOTE.noticed()
        for name, opened in CLIENTS.items():
            await total.claim(f"{name} opens and closes its session", shown(total, name, opened))
    word = "FAILED" if total.failed else "ok"
    print(f"test result: {word}. {total.passed} passed; {total.failed} failed;")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    faulthandler.dump_traceback_later(RUN_S, exit=True)
    # What the stateless era leaves out is deprecated in the SDK, and still what we test.
    warnings.simplefilter("ignore")
    sys.exit(asyncio.run(main()))
