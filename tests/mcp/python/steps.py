"""What every client is shown, each claim a function that takes an open client.

The claims are made in one session, in this order, and none needs another one's outcome.
"""

import asyncio
import base64
import json

import mcp_types as types
from mcp.shared.exceptions import MCPError

from clients import ELICITED, ROOT, SAMPLE, STATELESS
from scene import AT_ONCE_S, FILES, LIMIT_S, OFFERED, REPOSITORY, tools

TEXT = "demo://resource/dynamic/text/1"
BOTH = ["everything", "everything-http"]


def text_of(result):
    return "\n".join(it.text for it in result.content if it.type == "text")


async def said(client, name, arguments):
    """The text of a call that has to succeed."""
    result = await client.call(name, arguments)
    assert not result.is_error, result
    return text_of(result)


async def until(what):
    """Waits for something that is told, not answered."""
    async with asyncio.timeout(LIMIT_S):
        while not what():
            await asyncio.sleep(0.02)


async def refused(call):
    """The error of a request that has to fail, at once."""
    async with asyncio.timeout(AT_ONCE_S):
        try:
            result = await call
        except MCPError as error:
            return error
    raise AssertionError(f"not refused: {result}")


async def learns_whom_it_talks_to_and_in_which_version(client):
    expected = STATELESS if client.is_stateless else "2025-11-25"
    assert client.version == expected, client.version
    assert client.info.name == "tidegate", client.info
    assert "# everything\n" in client.instructions, client.instructions


async def is_offered_exactly_the_tools_of_all_servers(client):
    listed = await client.tools()
    assert sorted(it.name for it in listed) == tools(*OFFERED, asking=True), listed
    sum_tool = next(it for it in listed if it.name == "everything_get-sum")
    assert sum_tool.input_schema["required"] == ["a", "b"], sum_tool
    assert sum_tool.annotations.read_only_hint is True, sum_tool
    weather = next(it for it in listed if it.name == "everything_get-structured-content")
    assert set(weather.output_schema["properties"]) == {"temperature", "conditions", "humidity"}


async def calls_a_tool_of_each_server(client):
    for server in BOTH:
        assert await said(client, f"{server}_echo", {"message": "ahoy"}) == "Echo: ahoy"
        assert "5" in await said(client, f"{server}_get-sum", {"a": 2, "b": 3})
    path = str(FILES / "tide.txt")
    read = await said(client, "filesystem_read_text_file", {"path": path})
    assert read.strip() == "high water at noon", read
    entity = {"name": "Harbour", "entityType": "place", "observations": ["it is deep"]}
    await said(client, "memory_create_entities", {"entities": [entity]})
    assert "it is deep" in await said(client, "memory_open_nodes", {"names": ["Harbour"]})
    now = await said(client, "time_get_current_time", {"timezone": "UTC"})
    assert json.loads(now)["timezone"] == "UTC", now
    log = await said(client, "git_git_log", {"repo_path": REPOSITORY})
    assert "first light" in log, log


async def gets_every_kind_of_content(client):
    for server in BOTH:
        weather = await client.call(f"{server}_get-structured-content", {"location": "Chicago"})
        assert weather.structured_content["humidity"] == 82, weather
        image = await client.call(f"{server}_get-tiny-image", {})
        data = next(it for it in image.content if it.type == "image").data
        assert base64.b64decode(data).startswith(b"\x89PNG")
        links = await client.call(f"{server}_get-resource-links", {"count": 2})
        assert [it.type for it in links.content] == ["text", "resource_link", "resource_link"]
        found = await client.call(f"{server}_get-resource-reference", {"resourceId": 3})
        embedded = next(it for it in found.content if it.type == "resource")
        assert str(embedded.resource.uri) == "demo://resource/dynamic/text/3", embedded
        noted = await client.call(f"{server}_get-annotated-message", {"messageType": "error"})
        assert noted.content[0].annotations.priority == 1.0, noted


async def follows_the_progress_of_a_call_in_order(client):
    for server in BOTH:
        heard = []

        async def progressed(progress, total, _message, heard=heard):
            heard.append((progress, total))

        name = f"{server}_trigger-long-running-operation"
        result = await client.call(name, {"duration": 0.5, "steps": 5}, progressed)
        assert "completed" in text_of(result), result
        assert heard == [(step, 5) for step in range(1, 6)], heard


async def hears_the_log_at_the_level_it_asked_for(client):
    subscribed = "Received Subscribe Resource request"

    def mentioned():
        return [it for it in client.ears.logs if subscribed in str(it.data)]

    client.ears.logs.clear()
    await client.level("debug")
    await client.subscribe(TEXT)
    await until(mentioned)
    assert mentioned()[0].level == "info", mentioned()
    await client.level("error")
    client.ears.logs.clear()
    await client.subscribe(TEXT)
    await client.call("everything_echo", {"message": "later"})
    assert not mentioned(), mentioned()
    await client.level("debug")
    await client.unsubscribe(TEXT)


async def lists_and_reads_resources(client):
    uris = [str(it.uri) for it in await client.resources()]
    assert "demo://resource/static/document/features.md" in uris, uris
    assert "memory://knowledge-graph" in uris, uris
    templates = {it.uri_template for it in await client.templates()}
    kinds = {"text", "blob"}
    assert templates == {f"demo://resource/dynamic/{it}/{{resourceId}}" for it in kinds}, templates
    [document] = await client.read("demo://resource/static/document/features.md")
    assert "Everything" in document.text, document
    [text] = await client.read("demo://resource/dynamic/text/7")
    assert text.text.startswith("Resource 7: "), text
    [blob] = await client.read("demo://resource/dynamic/blob/7")
    assert base64.b64decode(blob.blob).startswith(b"Resource 7: "), blob
    [graph] = await client.read("memory://knowledge-graph")
    assert "entities" in json.loads(graph.text), graph


async def hears_of_updates_of_what_it_subscribed_to(client):
    client.ears.updated.clear()
    async with client.hearing([TEXT]):
        started = await said(client, "everything_toggle-subscriber-updates", {})
        assert started.startswith("Started"), started
        await until(lambda: client.ears.updated)
        assert set(client.ears.updated) == {TEXT}, client.ears.updated
        await said(client, "everything_toggle-subscriber-updates", {})


async def lists_and_gets_prompts(client):
    names = sorted(it.name for it in await client.prompts())
    assert names == sorted(f"{it}_{name}" for it in BOTH for name in OFFERED[it]["prompts"]), names
    for server in BOTH:
        [plain] = await client.prompt(f"{server}_simple-prompt", None)
        assert plain.content.text == "This is a simple prompt without arguments.", plain
        [asked] = await client.prompt(f"{server}_args-prompt", {"city": "Brest"})
        assert asked.content.text == "What's weather in Brest?", asked
        arguments = {"resourceType": "Text", "resourceId": "2"}
        _, embedded = await client.prompt(f"{server}_resource-prompt", arguments)
        assert str(embedded.content.resource.uri) == "demo://resource/dynamic/text/2", embedded


async def completes_arguments_of_prompts_and_templates(client):
    for server in BOTH:
        ref = types.PromptReference(type="ref/prompt", name=f"{server}_completable-prompt")
        found = await client.complete(ref, {"name": "department", "value": "S"})
        assert found == ["Sales", "Support"], found
        context = {"department": "Sales"}
        found = await client.complete(ref, {"name": "name", "value": "E"}, context)
        assert found == ["Eve"], found
    uri = "demo://resource/dynamic/text/{resourceId}"
    ref = types.ResourceTemplateReference(type="ref/resource", uri=uri)
    found = await client.complete(ref, {"name": "resourceId", "value": "4"})
    assert found == ["4"], found


async def is_asked_for_a_sample_by_a_tool(client):
    for server in BOTH:
        client.ears.asked.clear()
        answer = await said(client, f"{server}_trigger-sampling-request", {"prompt": "the tide?"})
        assert SAMPLE in answer, answer
        [(_, params)] = [it for it in client.ears.asked if it[0] == "sampling"]
        assert "the tide?" in params.messages[0].content.text, params


async def is_asked_for_an_elicitation_by_a_tool(client):
    for server in BOTH:
        client.ears.asked.clear()
        answer = await said(client, f"{server}_trigger-elicitation-request", {})
        assert f"Name: {ELICITED['name']}" in answer, answer
        [(_, params)] = [it for it in client.ears.asked if it[0] == "elicitation"]
        assert params.requested_schema["required"] == ["name"], params


async def is_asked_for_its_roots(client):
    for server in BOTH:
        answer = await said(client, f"{server}_get-roots-list", {})
        assert ROOT in answer, answer


async def gives_a_call_up_and_goes_on(client):
    for server in BOTH:
        name = f"{server}_trigger-long-running-operation"
        started = asyncio.Event()

        async def progressed(*_, started=started):
            started.set()

        arguments = {"duration": 60, "steps": 600}
        call = asyncio.create_task(client.call(name, arguments, progressed))
        async with asyncio.timeout(LIMIT_S):
            await started.wait()
            call.cancel()
            try:
                result = await call
            except asyncio.CancelledError:
                result = None
        assert result is None, result
        assert await said(client, f"{server}_echo", {"message": "next"}) == "Echo: next"


async def makes_many_calls_at_once_and_gets_each_its_own_answer(client):
    async def one(server, number):
        answer = await said(client, f"{server}_echo", {"message": f"{server} {number}"})
        assert answer == f"Echo: {server} {number}", answer

    await asyncio.gather(*(one(server, number) for server in BOTH for number in range(20)))


async def is_answered_a_ping(client):
    await client.ping()


async def is_told_what_is_wrong_with_a_request(client):
    error = await refused(client.call("everything_eco", {"message": "?"}))
    assert error.code == -32602, error
    said_so = "unknown tool: `everything_eco`; did you mean `everything_echo`?"
    assert error.message == said_so, error
    error = await refused(client.prompt("everything_no-prompt", None))
    assert (error.code, error.message) == (-32602, "unknown prompt: `everything_no-prompt`")
    error = await refused(client.read("nowhere://at/all"))
    assert error.message == "resource not found: `nowhere://at/all`", error
    # What a server says of its arguments is the server's own.
    for server in BOTH:
        result = await client.call(f"{server}_get-sum", {"a": "two", "b": 3})
        assert result.is_error and "Input validation error" in text_of(result), result
    missing = {"path": str(FILES / "missing.txt")}
    result = await client.call("filesystem_read_text_file", missing)
    assert result.is_error and "ENOENT" in text_of(result), result


STEPS = [
    learns_whom_it_talks_to_and_in_which_version,
    is_offered_exactly_the_tools_of_all_servers,
    calls_a_tool_of_each_server,
    gets_every_kind_of_content,
    follows_the_progress_of_a_call_in_order,
    hears_the_log_at_the_level_it_asked_for,
    lists_and_reads_resources,
    hears_of_updates_of_what_it_subscribed_to,
    lists_and_gets_prompts,
    completes_arguments_of_prompts_and_templates,
    is_asked_for_a_sample_by_a_tool,
    is_asked_for_an_elicitation_by_a_tool,
    is_asked_for_its_roots,
    gives_a_call_up_and_goes_on,
    makes_many_calls_at_once_and_gets_each_its_own_answer,
    is_answered_a_ping,
    is_told_what_is_wrong_with_a_request,
]

# The stateless era has no such requests.
SESSIONS_ONLY = [hears_the_log_at_the_level_it_asked_for, is_answered_a_ping]


def steps_of(client):
    """What this client is shown."""
    return [it for it in STEPS if not (client.is_stateless and it in SESSIONS_ONLY)]
