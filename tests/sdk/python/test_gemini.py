"""Gemini with the official `google-genai` SDK: plain, streamed, tools, images, counts, embeddings,
models, errors and failover."""

import unittest

from google.genai import errors, types
from scene import calls, gemini_client, marked, pixel_bytes

TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="tide_table",
            description="When is high tide?",
            parameters_json_schema={
                "type": "object",
                "properties": {"harbour": {"type": "string"}},
            },
        )
    ]
)


class GeminiTest(unittest.TestCase):
    def setUp(self):
        self.client = gemini_client()
        self.models = self.client.models

    def test_an_answer_arrives_with_text_reason_and_usage(self):
        answer = self.models.generate_content(model="gemini", contents="good morning")
        self.assertEqual(answer.text, "ebb as steady heard: good morning")
        self.assertEqual(answer.candidates[0].finish_reason, types.FinishReason.STOP)
        self.assertEqual(answer.usage_metadata.candidates_token_count, 6)

    def test_a_stream_arrives_piece_by_piece(self):
        stream = self.models.generate_content_stream(model="gemini", contents="good morning")
        pieces = [chunk.text for chunk in stream if chunk.text]
        self.assertGreater(len(pieces), 3)
        self.assertEqual("".join(pieces), "ebb as steady heard: good morning")

    def test_a_tool_is_called_and_its_result_given_back(self):
        config = types.GenerateContentConfig(tools=[TOOL])
        asked = types.Content(
            role="user", parts=[types.Part.from_text(text="please use the tool")]
        )
        answer = self.models.generate_content(model="gemini", contents=[asked], config=config)
        call = answer.function_calls[0]
        self.assertEqual((call.name, call.args), ("tide_table", {"harbour": "high tide"}))
        result = types.Part.from_function_response(name=call.name, response={"result": "at noon"})
        history = [
            asked,
            answer.candidates[0].content,
            types.Content(role="user", parts=[result]),
        ]
        final = self.models.generate_content(model="gemini", contents=history, config=config)
        self.assertIn("at noon", final.text)

    def test_an_image_arrives(self):
        image = types.Part.from_bytes(data=pixel_bytes(), mime_type="image/png")
        answer = self.models.generate_content(model="gemini", contents=["what is it", image])
        self.assertIn("saw 1 image(s)", answer.text)

    def test_tokens_are_counted_and_texts_embedded(self):
        count = self.models.count_tokens(model="gemini", contents="good morning")
        self.assertGreater(count.total_tokens, 0)
        answer = self.models.embed_content(model="gemini", contents=["a", "b"])
        self.assertEqual([it.values for it in answer.embeddings], [[0.5, -0.25, 0.125, 1.0]] * 2)

    def test_models_are_listed_and_found(self):
        names = [model.name for model in self.models.list()]
        self.assertIn("models/gemini", names)
        self.assertEqual(self.models.get(model="gemini").name, "models/gemini")

    def test_the_first_target_fails_and_the_second_answers(self):
        mark = marked()
        answer = self.models.generate_content(model="gemini-status-500", contents=mark)
        self.assertIn("flow as steady", answer.text)
        self.assertEqual(len(calls("flow", mark)), 1)

    def test_a_broken_stream_raises_an_error(self):
        stream = self.models.generate_content_stream(
            model="ebb-gemini/cut-after-3", contents="good morning"
        )
        with self.assertRaises(errors.ServerError):
            for _ in stream:
                pass

    def test_an_unknown_model_is_a_client_error(self):
        with self.assertRaises(errors.ClientError) as raised:
            self.models.generate_content(model="nobody/x", contents="hi")
        self.assertEqual((raised.exception.code, raised.exception.status), (404, "NOT_FOUND"))


if __name__ == "__main__":
    unittest.main()
