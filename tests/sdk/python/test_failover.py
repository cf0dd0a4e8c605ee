"""What an SDK notices of a provider that fails: nothing.

Each route of `gateway.yaml` named here fails its first attempt in one way and answers the second.
The SDK must get a whole answer from the second provider without retrying anything itself.
"""

import unittest

from scene import anthropic_client, calls, calls_by_provider, marked, openai_client, says

# Ways to fail before any content, streaming or not.
FAULTS = [
    "refused",
    "status-500",
    "status-529",
    "status-429",
    "status-401",
    "close",
    "not-http",
    "hang",
    "silence",
    "error-first",
    "cut-after-0",
    "stall-after-0",
    "comments-only",
]


class FailoverTest(unittest.TestCase):
    def check(self, fault, mark, text, headers, resolved):
        self.assertEqual(text, f"flow as steady heard: {mark}")
        self.assertEqual(headers["x-tidegate-resolved"], resolved)
        self.assertEqual(headers["x-tidegate-attempts"], "2")
        # One attempt each: the SDK did not send its request again.
        expected = {"ebb": 0 if fault == "refused" else 1, "flow": 1}
        made = calls_by_provider(mark)
        if fault == "close":
            # A kept connection that closes before any answer may have been closed meanwhile, so
            # the attempt goes out once more on a fresh one.
            made["ebb"] = min(made["ebb"], 1)
        self.assertEqual(made, expected)

    def test_a_failing_provider_is_invisible_to_openai(self):
        with openai_client() as client:
            for fault in FAULTS:
                with self.subTest(fault):
                    mark = marked()
                    raw = client.chat.completions.with_raw_response.create(
                        model=f"openai-{fault}", messages=says(mark)
                    )
                    text = raw.parse().choices[0].message.content
                    self.check(fault, mark, text, raw.headers, "flow/steady")

    def test_a_failing_provider_is_invisible_to_a_stream_of_openai(self):
        with openai_client() as client:
            for fault in FAULTS:
                with self.subTest(fault):
                    mark = marked()
                    raw = client.chat.completions.with_raw_response.create(
                        model=f"openai-{fault}", messages=says(mark), stream=True
                    )
                    chunks = list(raw.parse())
                    text = "".join(it.choices[0].delta.content or "" for it in chunks)
                    self.check(fault, mark, text, raw.headers, "flow/steady")
                    # One answer, from one provider, from its first event on.
                    self.assertEqual(len({chunk.id for chunk in chunks}), 1)
                    self.assertEqual({chunk.model for chunk in chunks}, {"steady"})

    def test_a_failing_provider_is_invisible_to_a_stream_of_responses(self):
        with openai_client() as client:
            for fault in FAULTS:
                with self.subTest(fault):
                    mark = marked()
                    raw = client.responses.with_raw_response.create(
                        model=f"openai-{fault}", input=mark, stream=True
                    )
                    *_, last = list(raw.parse())
                    self.assertEqual(last.type, "response.completed")
                    self.check(fault, mark, last.response.output_text, raw.headers, "flow/steady")

    def test_a_failing_provider_is_invisible_to_anthropic(self):
        with anthropic_client() as client:
            for fault in FAULTS:
                with self.subTest(fault):
                    mark = marked()
                    raw = client.messages.with_raw_response.create(
                        model=f"claude-{fault}", max_tokens=100, messages=says(mark)
                    )
                    text = raw.parse().content[0].text
                    self.check(fault, mark, text, raw.headers, "flow-claude/steady")

    def test_a_failing_provider_is_invisible_to_a_stream_of_anthropic(self):
        with anthropic_client() as client:
            for fault in FAULTS:
                with self.subTest(fault):
                    mark = marked()
                    with client.messages.stream(
                        model=f"claude-{fault}", max_tokens=100, messages=says(mark)
                    ) as stream:
                        text = "".join(stream.text_stream)
                        message = stream.get_final_message()
                        headers = stream.response.headers
                    self.check(fault, mark, text, headers, "flow-claude/steady")
                    self.assertEqual(message.stop_reason, "end_turn")

    def test_a_model_that_a_provider_gave_up_is_asked_for_elsewhere(self):
        for _ in range(2):
            with openai_client() as client:
                answer = client.chat.completions.create(
                    model="openai-status-404-model-gone", messages=says("hi")
                )
            self.assertEqual(answer.choices[0].message.content, "flow as steady heard: hi")

    def test_the_second_provider_gets_its_own_model_name_and_key(self):
        mark = marked()
        with openai_client() as client:
            client.chat.completions.create(model="openai-status-500", messages=says(mark))
        (first,), (second,) = calls("ebb", mark), calls("flow", mark)
        self.assertIn('"status-500"', first["body"])
        self.assertIn('"steady"', second["body"])
        self.assertIn(["authorization", "Bearer tg-upstream-key"], second["headers"])
