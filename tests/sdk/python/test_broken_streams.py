"""A stream that breaks after its first content: the SDK raises, and nothing looks complete.

The answer is never continued by another provider and never sent again; what was released before
the break is what the client has. An event whose JSON is broken is a break too: it never reaches the
SDK's parser.
"""

import unittest

import anthropic
import openai
from scene import anthropic_client, calls_by_provider, marked, openai_client, says

# Ways to break after three of nine tokens.
BREAKS = ["cut-after-3", "truncate-after-3", "error-after-3", "malformed-after-3", "stall-after-3"]


class BrokenStreamsTest(unittest.TestCase):
    def check(self, mark, pieces):
        self.assertEqual(len(pieces), 3)
        self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 0})

    def test_a_broken_chat_raises_and_has_no_finish_reason(self):
        for fault in BREAKS:
            with self.subTest(fault), openai_client() as client:
                mark, chunks = marked(), []
                stream = client.chat.completions.create(
                    model=f"ebb/tokens-9+{fault}", messages=says(mark), stream=True
                )
                with self.assertRaises(openai.APIError):
                    for chunk in stream:
                        chunks.append(chunk.choices[0])
                self.check(mark, [it.delta.content for it in chunks if it.delta.content])
                self.assertEqual({it.finish_reason for it in chunks}, {None})

    def test_a_broken_response_never_completes(self):
        # A provider's own error event is no exception to this SDK but an event of type `error`.
        for fault in BREAKS:
            with self.subTest(fault), openai_client() as client:
                mark, events = marked(), []
                stream = client.responses.create(
                    model=f"ebb/tokens-9+{fault}", input=mark, stream=True
                )
                try:
                    for event in stream:
                        events.append(event)
                    self.assertEqual(events[-1].type, "error")
                except openai.APIError:
                    pass
                kinds = [event.type for event in events]
                self.check(mark, [it for it in kinds if it == "response.output_text.delta"])
                self.assertNotIn("response.completed", kinds)

    def test_a_broken_message_raises_and_never_stops(self):
        for fault in BREAKS:
            with self.subTest(fault), anthropic_client() as client:
                mark, events = marked(), []
                stream = client.messages.create(
                    model=f"ebb-claude/tokens-9+{fault}",
                    max_tokens=100,
                    messages=says(mark),
                    stream=True,
                )
                with self.assertRaises(anthropic.APIError):
                    for event in stream:
                        events.append(event)
                kinds = [event.type for event in events]
                self.check(mark, [it for it in kinds if it == "content_block_delta"])
                self.assertNotIn("message_stop", kinds)

    def test_the_helper_of_anthropic_raises_instead_of_a_final_message(self):
        with anthropic_client() as client, self.assertRaises(anthropic.APIError):
            with client.messages.stream(
                model="ebb-claude/tokens-9+cut-after-3", max_tokens=100, messages=says("hi")
            ) as stream:
                stream.get_final_message()
