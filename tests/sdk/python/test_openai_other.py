"""The rest of the official `openai` SDK: responses, embeddings, models, older completions."""

import json
import unittest

import openai
from scene import PIXEL, openai_client

TOOL = {
    "type": "function",
    "name": "tide_table",
    "parameters": {"type": "object", "properties": {"harbour": {"type": "string"}}},
    "strict": False,
}


class ResponsesTest(unittest.TestCase):
    def setUp(self):
        self.client = openai_client()
        self.addCleanup(self.client.close)

    def test_an_answer_arrives_with_text_and_usage(self):
        answer = self.client.responses.create(model="openai", input="good morning")
        self.assertEqual(answer.output_text, "ebb as steady heard: good morning")
        self.assertEqual((answer.status, answer.usage.output_tokens), ("completed", 6))

    def test_a_stream_ends_with_the_whole_answer(self):
        stream = self.client.responses.create(model="openai", input="good morning", stream=True)
        events = list(stream)
        deltas = [it.delta for it in events if it.type == "response.output_text.delta"]
        self.assertEqual("".join(deltas), "ebb as steady heard: good morning")
        self.assertEqual([it.sequence_number for it in events], list(range(len(events))))
        self.assertEqual(events[-1].type, "response.completed")
        self.assertEqual(events[-1].response.output_text, "".join(deltas))

    def test_the_stream_helper_gathers_a_whole_answer(self):
        with self.client.responses.stream(model="openai", input="hi") as stream:
            for _ in stream:
                pass
            answer = stream.get_final_response()
        self.assertEqual(answer.output_text, "ebb as steady heard: hi")

    def test_a_tool_is_called_and_its_result_is_taken(self):
        said = [{"role": "user", "content": "please use the tool"}]
        first = self.client.responses.create(model="openai", input=said, tools=[TOOL])
        (call,) = first.output
        self.assertEqual((call.type, call.name), ("function_call", "tide_table"))
        self.assertEqual(json.loads(call.arguments), {"harbour": "high tide"})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "at noon"}
        second = self.client.responses.create(
            model="openai", input=[*said, call.model_dump(), result], tools=[TOOL]
        )
        self.assertEqual(second.output_text, "ebb as steady heard: at noon")

    def test_an_image_is_seen(self):
        content = [
            {"type": "input_text", "text": "what is this"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "low"},
        ]
        answer = self.client.responses.create(
            model="openai", input=[{"role": "user", "content": content}]
        )
        self.assertIn("saw 1 image(s)", answer.output_text)


class OtherEndpointsTest(unittest.TestCase):
    def setUp(self):
        self.client = openai_client()
        self.addCleanup(self.client.close)

    def test_embeddings_come_as_numbers_in_both_encodings(self):
        for encoding in [{}, {"encoding_format": "float"}]:
            with self.subTest(encoding):
                answer = self.client.embeddings.create(
                    model="openai", input=["one", "two"], **encoding
                )
                vectors = [row.embedding for row in answer.data]
                self.assertEqual(vectors, [[0.5, -0.25, 0.125, 1.0]] * 2)

    def test_models_are_listed_and_each_can_be_retrieved(self):
        listed = {model.id for model in self.client.models.list()}
        self.assertLessEqual({"openai", "claude", "ebb/steady", "flow/steady"}, listed)
        # The SDK escapes what it puts into a path: `/` arrives as `%2F`, `+` may arrive as `%2B`.
        for name in ["openai", "ebb/steady", "ebb/tokens-9+stall-after-3", "gpt-4o"]:
            with self.subTest(name):
                self.assertEqual(self.client.models.retrieve(name).id, name)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("nobody/knows")

    def test_older_completions_are_answered_and_streamed(self):
        answer = self.client.completions.create(model="openai", prompt="good morning")
        self.assertEqual(answer.choices[0].text, "ebb as steady heard: good morning")
        stream = self.client.completions.create(model="openai", prompt="hi", stream=True)
        text = "".join(part.choices[0].text for part in stream)
        self.assertEqual(text, "ebb as steady heard: hi")

    def test_moderations_take_the_same_way(self):
        raw = self.client.moderations.with_raw_response.create(model="openai", input="hi")
        self.assertEqual(raw.headers["x-tidegate-resolved"], "ebb/steady")
        self.assertEqual(raw.status_code, 200)


class AsyncOtherTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_async_client_has_responses_embeddings_and_models(self):
        async with openai_client(kind=openai.AsyncOpenAI) as client:
            stream = await client.responses.create(model="openai", input="hi", stream=True)
            events = [event async for event in stream]
            self.assertEqual(events[-1].response.output_text, "ebb as steady heard: hi")
            answer = await client.embeddings.create(model="openai", input="one")
            self.assertEqual(len(answer.data), 1)
            self.assertIn("openai", [model.id async for model in client.models.list()])
