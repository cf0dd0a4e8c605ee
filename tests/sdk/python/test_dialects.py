"""Any client, any provider: what an SDK makes of an answer does not depend on who gave it.

Each exchange of `tests/dialects` is asked for with an official SDK, plain and by its streaming
helper: first of a provider of the SDK's own dialect, then of each other one. The typed objects must
be equal, and so must the error where the SDK's helper raises one (a cut answer, for example). Where
the vendors themselves say different things, `differs` says what is expected instead.
"""

import unittest

import anthropic
import openai
from dialect_clients import ANTHROPIC, CLIENTS, GEMINI, MODELS, OPENAI, Tide, ask
from google.genai import errors

SAMPLES = (
    "text",
    "tool-call",
    "parallel-tools",
    "thinking",
    "json-schema",
    "stop",
    "length",
    "refusal",
)

# The sample of Chat and Responses refuses in words.
WORDS = "I'm sorry, but I can't help with that."


def differs(client, vendor, sample, native):
    """What the client sees where the vendor says something else than the client's own one."""
    if (client, sample) == ("messages", "stop"):
        # Nobody but Anthropic tells that a stop sequence was met.
        rest = {key: it for key, it in native.items() if key != "stop_sequence"}
        return {**rest, "stop_reason": "end_turn"}
    if sample != "refusal" or {client, vendor} == {"chat", "responses"}:
        return native
    # Chat and Responses refuse in words; Anthropic's answer is empty; Gemini takes no prompt.
    made = 0 if vendor == "gemini" else 10
    usage = {"input_tokens": 12, "cache_read_input_tokens": 8, "output_tokens": made}
    if client == "messages":
        refused = {**native, "usage": {key: it for key, it in usage.items() if it}}
        if vendor in ("chat", "responses"):
            refused["content"] = [{"type": "text", "text": WORDS}]
        return refused
    if client == "gemini":
        counts = {**native["usage_metadata"], "candidates_token_count": 10}
        counts["total_token_count"] = 30
        # The words stand in `finishMessage`, which this SDK does not show.
        return {"candidates": [{"finish_reason": "SAFETY"}], "usage_metadata": counts}
    counts = {**native["usage"], "total_tokens": 20 + made}
    if client == "chat":
        counts["completion_tokens"] = made
        message = {"role": "assistant", "content": ""}
        choice = {"finish_reason": "content_filter", "message": message}
        refused = {"object": "chat.completion", "choices": [choice]}
    else:
        counts["output_tokens"] = made
        details = {"reason": "content_filter"}
        refused = {"object": "response", "status": "incomplete", "incomplete_details": details}
    return {**refused, "usage": {key: it for key, it in counts.items() if it}}


def seen(client, vendor, sample, is_stream):
    """What the SDK gives, or the kind of error that it raises."""
    try:
        return CLIENTS[client](vendor, sample, is_stream)
    except openai.ContentFilterFinishReasonError:
        return "the helper raised ContentFilterFinishReasonError"
    except openai.LengthFinishReasonError:
        return "the helper raised LengthFinishReasonError"
    except RuntimeError as error:
        return f"the helper raised: {error}"


def of_the_helper(client, sample, is_stream):
    """The helpers of openai raise an error for an answer that a filter stopped."""
    if not is_stream or sample != "refusal":
        return None
    return {
        "chat": "the helper raised ContentFilterFinishReasonError",
        "responses": "the helper raised: Didn't receive a `response.completed` event.",
    }.get(client)


class SameFromEveryVendor(unittest.TestCase):
    maxDiff = None

    def compare(self, client, sample):
        for is_stream in (False, True):
            native = seen(client, client, sample, is_stream)
            for vendor in MODELS:
                if vendor == client:
                    continue
                with self.subTest(vendor=vendor, is_stream=is_stream):
                    wanted = differs(client, vendor, sample, native)
                    if wanted is not native:
                        wanted = of_the_helper(client, sample, is_stream) or wanted
                    self.assertEqual(seen(client, vendor, sample, is_stream), wanted)


def case(client, sample):
    return lambda self: self.compare(client, sample)


for one_client in CLIENTS:
    for one_sample in SAMPLES:
        name = f"test_{one_client}_{one_sample.replace('-', '_')}"
        setattr(SameFromEveryVendor, name, case(one_client, one_sample))


class Helpers(unittest.TestCase):
    """What the SDKs add to the wire: answers as objects, and loops that run the tools."""

    def each_vendor(self, check):
        for vendor, model in MODELS.items():
            with self.subTest(vendor=vendor):
                check(model)

    def tide(self, answer):
        self.assertEqual(answer, Tide(place="Kiel", metres=3.0))

    def test_an_answer_by_a_schema_is_an_object_in_chat(self):
        def check(model):
            answer = OPENAI.chat.completions.parse(
                model=model,
                messages=[{"role": "user", "content": ask("json-schema")}],
                response_format=Tide,
            )
            self.tide(answer.choices[0].message.parsed)

        self.each_vendor(check)

    def test_an_answer_by_a_schema_is_an_object_in_responses(self):
        def check(model):
            answer = OPENAI.responses.parse(
                model=model, input=ask("json-schema"), text_format=Tide
            )
            self.tide(answer.output_parsed)

        self.each_vendor(check)

    def test_an_answer_by_a_schema_is_an_object_in_messages(self):
        def check(model):
            answer = ANTHROPIC.messages.parse(
                model=model,
                max_tokens=4096,
                messages=[{"role": "user", "content": ask("json-schema")}],
                output_format=Tide,
            )
            self.tide(answer.parsed_output)

        self.each_vendor(check)

    def test_an_answer_by_a_schema_is_an_object_in_gemini(self):
        config = {"response_mime_type": "application/json", "response_schema": Tide}

        def check(model):
            answer = GEMINI.models.generate_content(
                model=model, contents=ask("json-schema"), config=config
            )
            self.tide(answer.parsed)

        self.each_vendor(check)

    def test_the_loop_of_anthropics_sdk_runs_the_tool(self):
        """It keeps the conversation in a thread at its vendor; elsewhere it must send the whole."""
        asked = []

        @anthropic.beta_tool
        def get_tide(place: str, options: dict) -> str:
            """High and low water.

            Args:
                place: A harbour.
                options: The unit and the days.
            """
            asked.append((place, options))
            return "06:12 [[text]]"

        def check(model):
            asked.clear()
            runner = ANTHROPIC.beta.messages.tool_runner(
                model=model,
                max_tokens=4096,
                tools=[get_tide],
                messages=[{"role": "user", "content": ask("tool-call")}],
            )
            last = runner.until_done()
            self.assertEqual(asked, [("Kiel", {"unit": "metre", "days": [1, 2]})])
            self.assertIn("06:12", last.content[0].text)

        self.each_vendor(check)

    def test_the_loop_of_googles_sdk_runs_the_tool(self):
        asked = []

        def get_tide(place: str, options: dict) -> str:
            """High and low water."""
            asked.append((place, options))
            return "06:12 [[text]]"

        def check(model):
            asked.clear()
            chat = GEMINI.chats.create(model=model, config={"tools": [get_tide]})
            answer = chat.send_message(ask("tool-call"))
            self.assertEqual(asked, [("Kiel", {"unit": "metre", "days": [1, 2]})])
            self.assertIn("06:12", answer.text)

        self.each_vendor(check)


class Errors(unittest.TestCase):
    """The same typed error from every vendor."""

    def raised(self, sample, is_stream, raises):
        """One error for each client and vendor."""
        found = []
        for client in CLIENTS:
            for vendor in MODELS:
                with self.subTest(client=client, vendor=vendor):
                    with self.assertRaises(raises[client]) as raised:
                        CLIENTS[client](vendor, sample, is_stream)
                    found.append(raised.exception)
        self.assertEqual(len(found), len(CLIENTS) * len(MODELS))
        return found

    def test_too_many_requests(self):
        raises = {
            "chat": openai.RateLimitError,
            "responses": openai.RateLimitError,
            "messages": anthropic.RateLimitError,
            "gemini": errors.ClientError,
        }
        for error in self.raised("limited", False, raises):
            self.assertEqual(getattr(error, "status_code", None) or error.code, 429)
            self.assertRegex(str(error), "(?i)rate limit")

    def test_a_stream_that_turns_into_an_error(self):
        raises = {
            "chat": openai.APIError,
            "responses": (openai.APIError, RuntimeError),
            "messages": anthropic.APIStatusError,
            "gemini": errors.APIError,
        }
        self.raised("broken", True, raises)


if __name__ == "__main__":
    unittest.main()
