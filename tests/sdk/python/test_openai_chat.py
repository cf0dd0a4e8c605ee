"""Chat completions with the official `openai` SDK: plain, streamed, tools, images, usage."""

import json
import unittest

import openai
from scene import KEY, PIXEL, calls, marked, openai_client, says

TOOL = {
    "type": "function",
    "function": {
        "name": "tide_table",
        "description": "When is high tide?",
        "parameters": {
            "type": "object",
            "properties": {"harbour": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["harbour"],
        },
    },
}


class ChatTest(unittest.TestCase):
    def setUp(self):
        self.client = openai_client()
        self.addCleanup(self.client.close)

    def test_an_answer_arrives_with_text_reason_and_usage(self):
        answer = self.client.chat.completions.create(model="openai", messages=says("good morning"))
        self.assertEqual(answer.choices[0].message.content, "ebb as steady heard: good morning")
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.usage.completion_tokens, 6)

    def test_a_name_that_a_route_matches_is_answered(self):
        answer = self.client.chat.completions.create(model="gpt-4o", messages=says("hi"))
        self.assertEqual(answer.model, "steady")

    def test_who_answered_is_told_in_the_headers(self):
        raw = self.client.chat.completions.with_raw_response.create(
            model="openai", messages=says("hi")
        )
        self.assertEqual(raw.headers["x-tidegate-resolved"], "ebb/steady")
        self.assertEqual(raw.headers["x-tidegate-attempts"], "1")
        self.assertTrue(raw.headers["x-tidegate-request-id"].startswith("req_"))
        self.assertEqual(raw.parse().choices[0].message.role, "assistant")

    def test_the_callers_key_stays_here_and_unknown_fields_pass(self):
        mark = marked()
        self.client.chat.completions.create(
            model="openai", messages=says(mark), extra_body={"top_k": 7, "ünknown": [1.50, None]}
        )
        (call,) = calls("ebb", mark)
        self.assertNotIn(KEY, json.dumps(call))
        self.assertIn(["authorization", "Bearer tg-upstream-key"], call["headers"])
        body = json.loads(call["body"])
        self.assertEqual((body["model"], body["top_k"]), ("steady", 7))
        self.assertEqual(body["ünknown"], [1.5, None])

    def test_a_stream_gives_the_same_text_in_pieces(self):
        stream = self.client.chat.completions.create(
            model="openai", messages=says("good morning"), stream=True
        )
        chunks = list(stream)
        pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
        self.assertEqual("".join(pieces), "ebb as steady heard: good morning")
        self.assertGreater(len(pieces), 5)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")

    def test_a_stream_tells_its_usage_when_asked(self):
        stream = self.client.chat.completions.create(
            model="openai",
            messages=says("good morning"),
            stream=True,
            stream_options={"include_usage": True},
        )
        *_, last = list(stream)
        self.assertEqual((last.choices, last.usage.completion_tokens), ([], 6))

    def test_the_stream_helper_gathers_a_whole_answer(self):
        with self.client.chat.completions.stream(model="openai", messages=says("hi")) as stream:
            kinds = {event.type for event in stream}
            answer = stream.get_final_completion()
        self.assertIn("content.delta", kinds)
        self.assertEqual(answer.choices[0].message.content, "ebb as steady heard: hi")

    def test_a_tool_is_called_and_its_result_is_taken(self):
        messages = says("please use the tool")
        first = self.client.chat.completions.create(
            model="openai", messages=messages, tools=[TOOL]
        )
        self.assertEqual(first.choices[0].finish_reason, "tool_calls")
        (call,) = first.choices[0].message.tool_calls
        self.assertEqual(call.function.name, "tide_table")
        self.assertEqual(json.loads(call.function.arguments), {"harbour": "high tide", "days": 1})
        messages.append(first.choices[0].message)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "at noon"})
        second = self.client.chat.completions.create(
            model="openai", messages=messages, tools=[TOOL]
        )
        self.assertEqual(second.choices[0].message.content, "ebb as steady heard: at noon")

    def test_a_streamed_tool_call_comes_together(self):
        stream = self.client.chat.completions.create(
            model="openai",
            messages=says("please use the tool"),
            tools=[TOOL],
            stream=True,
        )
        name, arguments = "", ""
        for chunk in stream:
            for call in chunk.choices[0].delta.tool_calls or []:
                name += call.function.name or ""
                arguments += call.function.arguments or ""
        self.assertEqual(name, "tide_table")
        self.assertEqual(json.loads(arguments), {"harbour": "high tide", "days": 1})

    def test_an_image_arrives_as_it_was_sent(self):
        mark = marked("what is this")
        url = f"data:image/png;base64,{PIXEL}"
        content = [
            {"type": "text", "text": mark},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        answer = self.client.chat.completions.create(model="openai", messages=says(content))
        self.assertIn("saw 1 image(s)", answer.choices[0].message.content)
        (call,) = calls("ebb", mark)
        self.assertEqual(json.loads(call["body"])["messages"][0]["content"], content)

    def test_a_stream_can_be_left_early_and_the_client_goes_on(self):
        with self.client.chat.completions.create(
            model="ebb/tokens-200+gap-20ms", messages=says("hi"), stream=True
        ) as stream:
            for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
        answer = self.client.chat.completions.create(model="openai", messages=says("hi"))
        self.assertEqual(answer.choices[0].finish_reason, "stop")


class AsyncChatTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_async_client_is_answered_and_streamed_to(self):
        async with openai_client(kind=openai.AsyncOpenAI) as client:
            answer = await client.chat.completions.create(model="openai", messages=says("hi"))
            self.assertEqual(answer.choices[0].message.content, "ebb as steady heard: hi")
            stream = await client.chat.completions.create(
                model="openai", messages=says("hi"), stream=True
            )
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        self.assertEqual(text, "ebb as steady heard: hi")
