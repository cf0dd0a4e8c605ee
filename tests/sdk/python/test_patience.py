"""The timeout of an SDK is how long it waits for bytes, not how long an answer may take."""

import time
import unittest

import openai

from scene import URL, KEY, anthropic_client, calls_by_provider, marked, openai_client, says

# Five seconds of tokens: more than twice the timeout of the clients below.
LONG = "tokens-20+gap-250ms"


class PatienceTest(unittest.TestCase):
    def test_a_stream_that_outlasts_the_timeout_is_whole(self):
        mark = marked()
        with openai_client().with_options(timeout=2) as client:
            began = time.monotonic()
            stream = client.chat.completions.create(
                model=f"ebb/{LONG}", messages=says(mark), stream=True
            )
            chunks = [chunk for chunk in stream if chunk.choices]
            self.assertGreater(time.monotonic() - began, 2, "it has to outlast the timeout")
        texts = [chunk.choices[0].delta.content for chunk in chunks]
        self.assertEqual(len([text for text in texts if text]), 20)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")
        self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 0})

    def test_a_stream_of_messages_that_outlasts_the_timeout_is_whole(self):
        mark = marked()
        with anthropic_client().with_options(timeout=2) as client:
            with client.messages.stream(
                model=f"ebb-claude/{LONG}", messages=says(mark), max_tokens=100
            ) as stream:
                message = stream.get_final_message()
        self.assertEqual(message.stop_reason, "end_turn")
        self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 0})

    def test_a_hanging_provider_is_left_before_the_timeout(self):
        mark = marked()
        with openai_client().with_options(timeout=2) as client:
            raw = client.chat.completions.with_raw_response.create(
                model="openai-hang-long", messages=says(mark)
            )
        self.assertEqual(raw.headers["x-tidegate-resolved"], "flow/steady")
        self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 1})

    def test_the_error_of_a_silent_provider_comes_before_the_timeout(self):
        with openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, timeout=2, max_retries=0) as client:
            with self.assertRaises(openai.InternalServerError) as caught:
                client.chat.completions.create(model="ebb/hang+gap-1ms", messages=says(marked()))
        self.assertEqual(caught.exception.status_code, 504)
        self.assertEqual(caught.exception.response.headers["x-should-retry"], "true")
