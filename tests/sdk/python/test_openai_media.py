"""Uploads, audio and moderations with the official `openai` SDK: forms, and answers in bytes."""

import io
import time
import unittest

import openai
from scene import calls, marked, openai_client

# Bytes that are no text, with line ends among them.
SOUND = bytes(range(256)) + b"\r\n--\r\n\r\n" + bytes(256)


def spoken(text):
    """What a fake provider says as audio: a frame for each word."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1].strip()
    return b"".join(b"\xff\xfb" + word.encode() for word in words)


class MediaTest(unittest.TestCase):
    def setUp(self):
        self.client = openai_client()
        self.addCleanup(self.client.close)

    def test_an_upload_is_transcribed(self):
        answer = self.client.audio.transcriptions.create(
            model="openai", file=("tide.wav", SOUND), language="en"
        )
        self.assertRegex(answer.text, "^ebb as steady heard: a form of [0-9]+ bytes$")

    def test_an_upload_moves_to_the_next_target_with_its_own_model(self):
        mark = marked()
        raw = self.client.audio.translations.with_raw_response.create(
            model="openai-status-500", file=("tide.wav", io.BytesIO(SOUND)), prompt=mark
        )
        self.assertEqual(raw.headers["x-tidegate-attempts"], "2")
        self.assertEqual(raw.headers["x-tidegate-resolved"], "flow/steady")
        self.assertTrue(raw.parse().text.startswith("flow as steady heard: a form of "))
        for provider, model in [("ebb", "status-500"), ("flow", "steady")]:
            (call,) = calls(provider, mark)
            self.assertEqual(call["path"], "/v1/audio/translations")
            self.assertIn(f'name="model"\r\n\r\n{model}\r\n', call["body"])

    def test_an_image_is_edited(self):
        raw = self.client.images.with_raw_response.edit(
            model="openai", image=("tide.png", SOUND), prompt="higher"
        )
        self.assertEqual(raw.headers["x-tidegate-resolved"], "ebb/steady")

    def test_speech_arrives_byte_for_byte(self):
        answer = self.client.audio.speech.create(
            model="openai", voice="alloy", input="good morning"
        )
        self.assertEqual(answer.read(), spoken("ebb as steady heard: good morning"))
        self.assertEqual(answer.response.headers["content-type"], "audio/mpeg")

    def test_speech_is_heard_while_it_is_still_made(self):
        began = time.monotonic()
        with self.client.audio.speech.with_streaming_response.create(
            model="ebb/tokens-3+gap-2s", voice="alloy", input="good morning"
        ) as answer:
            frames = answer.iter_bytes()
            self.assertEqual(next(frames), b"\xff\xfbebb ")
            self.assertLess(time.monotonic() - began, 1.9)
            self.assertEqual(b"".join(frames), b"\xff\xfbas \xff\xfbtokens-3+gap-2s ")
        self.assertGreater(time.monotonic() - began, 3.9)

    def test_moderations_are_answered(self):
        answer = self.client.moderations.create(model="openai", input="good morning")
        self.assertEqual((answer.model, answer.results), ("steady", []))

    def test_what_is_no_inference_is_not_forwarded(self):
        mark = marked()
        with self.assertRaises(openai.NotFoundError) as raised:
            self.client.fine_tuning.jobs.create(model="openai", training_file=mark)
        self.assertIn("not forwarded", raised.exception.message)
        self.assertEqual(calls("ebb", mark), [])
