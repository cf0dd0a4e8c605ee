"""Messages with the official `anthropic` SDK: plain, streamed, tools, images, counts, models."""

import json
import unittest

import anthropic
from scene import KEY, PIXEL, anthropic_client, calls, marked, says

TOOL = {
    "name": "tide_table",
    "description": "When is high tide?",
    "input_schema": {"type": "object", "properties": {"harbour": {"type": "string"}}},
}
ASK = {"model": "claude", "max_tokens": 100}


class MessagesTest(unittest.TestCase):
    def setUp(self):
        self.client = anthropic_client()
        self.addCleanup(self.client.close)

    def test_an_answer_arrives_with_text_reason_and_usage(self):
        answer = self.client.messages.create(messages=says("good morning"), **ASK)
        self.assertEqual(answer.content[0].text, "ebb as steady heard: good morning")
        self.assertEqual((answer.stop_reason, answer.usage.output_tokens), ("end_turn", 6))

    def test_who_answered_is_told_in_the_headers(self):
        raw = self.client.messages.with_raw_response.create(messages=says("hi"), **ASK)
        self.assertEqual(raw.headers["x-tidegate-resolved"], "ebb-claude/steady")
        self.assertEqual(raw.parse().role, "assistant")

    def test_a_foreign_key_beside_the_right_one_does_no_harm(self):
        # As where a tool keeps the vendor's key and a user adds the gateway's as a header.
        with anthropic_client(key="sk-ant-of-the-vendor") as client:
            bearer = {"authorization": f"Bearer {KEY}"}
            answer = client.messages.create(messages=says("hi"), extra_headers=bearer, **ASK)
        self.assertEqual(answer.content[0].text, "ebb as steady heard: hi")

    def test_the_callers_key_stays_here_and_the_vendors_headers_pass(self):
        mark = marked()
        beta = {"anthropic-beta": "high-tide-2025"}
        self.client.messages.create(messages=says(mark), extra_headers=beta, **ASK)
        (call,) = calls("ebb", mark)
        self.assertNotIn(KEY, json.dumps(call))
        for pair in [
            ["x-api-key", "tg-upstream-key"],
            ["anthropic-beta", "high-tide-2025"],
        ]:
            self.assertIn(pair, call["headers"])
        self.assertIn("anthropic-version", dict(call["headers"]))
        self.assertEqual(json.loads(call["body"])["model"], "steady")

    def test_a_stream_of_events_begins_and_ends_in_order(self):
        stream = self.client.messages.create(messages=says("good morning"), stream=True, **ASK)
        events = list(stream)
        kinds = [event.type for event in events]
        self.assertEqual(kinds[:2], ["message_start", "content_block_start"])
        self.assertEqual(kinds[-3:], ["content_block_stop", "message_delta", "message_stop"])
        text = "".join(it.delta.text for it in events if it.type == "content_block_delta")
        self.assertEqual(text, "ebb as steady heard: good morning")

    def test_the_stream_helper_gives_text_and_the_whole_message(self):
        with self.client.messages.stream(messages=says("good morning"), **ASK) as stream:
            text = "".join(stream.text_stream)
            message = stream.get_final_message()
        self.assertEqual(text, "ebb as steady heard: good morning")
        self.assertEqual((message.content[0].text, message.stop_reason), (text, "end_turn"))

    def test_a_tool_is_called_and_its_result_is_taken(self):
        messages = says("please use the tool")
        first = self.client.messages.create(messages=messages, tools=[TOOL], **ASK)
        self.assertEqual(first.stop_reason, "tool_use")
        (use,) = first.content
        self.assertEqual((use.name, use.input), ("tide_table", {"harbour": "high tide"}))
        messages.append({"role": "assistant", "content": first.content})
        result = {"type": "tool_result", "tool_use_id": use.id, "content": "at noon"}
        messages.append({"role": "user", "content": [result]})
        second = self.client.messages.create(messages=messages, tools=[TOOL], **ASK)
        self.assertEqual(second.content[0].text, "ebb as steady heard: at noon")

    def test_a_streamed_tool_call_comes_together(self):
        said = says("please use the tool")
        with self.client.messages.stream(messages=said, tools=[TOOL], **ASK) as stream:
            (use,) = stream.get_final_message().content
        self.assertEqual((use.name, use.input), ("tide_table", {"harbour": "high tide"}))

    def test_an_image_arrives_as_it_was_sent(self):
        mark = marked("what is this")
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        content = [{"type": "image", "source": source}, {"type": "text", "text": mark}]
        answer = self.client.messages.create(messages=says(content), **ASK)
        self.assertIn("saw 1 image(s)", answer.content[0].text)
        (call,) = calls("ebb", mark)
        self.assertEqual(json.loads(call["body"])["messages"][0]["content"], content)

    def test_tokens_are_counted(self):
        short = self.client.messages.count_tokens(model="claude", messages=says("hi"))
        long = self.client.messages.count_tokens(model="claude", messages=says("hi " * 400))
        self.assertGreater(long.input_tokens, short.input_tokens + 200)

    def test_models_are_listed_and_each_can_be_retrieved(self):
        listed = {model.id for model in self.client.models.list()}
        self.assertLessEqual({"claude", "ebb-claude/steady"}, listed)
        for name in ["claude", "ebb-claude/steady", "claude-opus"]:
            with self.subTest(name):
                self.assertEqual(self.client.models.retrieve(name).id, name)
        with self.assertRaises(anthropic.NotFoundError):
            self.client.models.retrieve("nobody/knows")


class AsyncMessagesTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_async_client_is_answered_and_streamed_to(self):
        async with anthropic_client(kind=anthropic.AsyncAnthropic) as client:
            answer = await client.messages.create(messages=says("hi"), **ASK)
            self.assertEqual(answer.content[0].text, "ebb as steady heard: hi")
            async with client.messages.stream(messages=says("hi"), **ASK) as stream:
                text = "".join([piece async for piece in stream.text_stream])
        self.assertEqual(text, "ebb as steady heard: hi")
