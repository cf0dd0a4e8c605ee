"""What a client notices of a server that is killed and comes back."""

import asyncio
import traceback

from scene import AT_ONCE_S, LIMIT_S, NARROW_KEY, OFFERED, REMOTE, tools
from steps import refused, said, text_of

DOWN = "everything-http"
OTHERS = [server for server in OFFERED if server != DOWN]


async def keeps_its_session_while_a_server_is_down_and_back(client, opened):
    assert await said(client, f"{DOWN}_echo", {"message": "before"}) == "Echo: before"
    REMOTE.kill()
    try:
        await fails_fast_and_names_the_server(client)
        await goes_on_with_the_others(client)
        # A session that opens now goes without it.
        async with opened() as other:
            listed = sorted(it.name for it in await other.tools())
            assert listed == tools(*OTHERS, asking=True), listed
            await goes_on_with_the_others(other)
    finally:
        REMOTE.start()
    async with asyncio.timeout(LIMIT_S):
        while (result := await client.call(f"{DOWN}_echo", {"message": "after"})).is_error:
            await asyncio.sleep(0.1)
    assert text_of(result) == "Echo: after", result
    async with opened() as other:
        listed = sorted(it.name for it in await other.tools())
        assert listed == tools(*OFFERED, asking=True), listed


async def fails_fast_and_names_the_server(client):
    async with asyncio.timeout(AT_ONCE_S):
        result = await client.call(f"{DOWN}_echo", {"message": "anybody?"})
    assert result.is_error, result
    assert text_of(result).startswith(f'backend "{DOWN}" unavailable: '), result
    assert result.structured_content["code"] == "backend_unavailable", result
    assert result.structured_content["backend"] == DOWN, result
    # A tool with an output schema too, against which clients check what they get.
    async with asyncio.timeout(AT_ONCE_S):
        result = await client.call(f"{DOWN}_get-structured-content", {"location": "Chicago"})
    assert result.is_error, result
    assert text_of(result).startswith(f'backend "{DOWN}" unavailable: '), result
    error = await refused(client.prompt(f"{DOWN}_simple-prompt", None))
    assert error.message.startswith(f'backend "{DOWN}" unavailable: '), error
    assert error.data["backend"] == DOWN, error
    # A session keeps what it saw; without one, each list shows what there is.
    there = OTHERS if client.is_stateless else OFFERED
    listed = sorted(it.name for it in await client.tools())
    assert listed == tools(*there, asking=True), listed


async def goes_on_with_the_others(client):
    assert await said(client, "everything_echo", {"message": "still"}) == "Echo: still"
    assert "UTC" in await said(client, "time_get_current_time", {"timezone": "UTC"})


async def that_cannot_be_asked_is_offered_fewer_tools(opened):
    async with opened(is_able=False) as client:
        listed = sorted(it.name for it in await client.tools())
        assert listed == tools(*OFFERED, asking=False), listed


async def with_a_narrow_key_sees_its_servers_only(opened):
    async with opened(key=NARROW_KEY) as client:
        listed = sorted(it.name for it in await client.tools())
        assert listed == tools("memory", "time", asking=True), listed
        error = await refused(client.call("everything_echo", {"message": "?"}))
        assert error.message.startswith("unknown tool: `everything_echo`"), error


async def with_a_wrong_key_is_refused_and_told_so(opened):
    try:
        async with asyncio.timeout(LIMIT_S), opened(key="tg-wrong") as client:
            await client.tools()
    except Exception as refusal:
        told = "".join(traceback.format_exception(refusal))
        assert "the key that was sent is not known here" in told, told
    else:
        raise AssertionError("not refused")
