"""The typed errors of both official SDKs, and that they do not retry what was retried here."""

import unittest

import anthropic
import openai
from scene import (
    NARROW_KEY,
    anthropic_client,
    calls_by_provider,
    marked,
    openai_client,
    says,
)


class Openai:
    """One way to ask each SDK, so that every claim is made of both."""

    errors, prefix, own = openai, "openai", ""

    @staticmethod
    def ask(model, text="hi", **options):
        with openai_client(**options) as client:
            client.chat.completions.create(model=model, messages=says(text))


class Anthropic:
    errors, prefix, own = anthropic, "claude", "-claude"

    @staticmethod
    def ask(model, text="hi", **options):
        with anthropic_client(**options) as client:
            client.messages.create(model=model, max_tokens=100, messages=says(text))


class ErrorsTest(unittest.TestCase):
    def raised(self, sdk, error, model, text="hi", **options):
        with self.assertRaises(error) as caught:
            sdk.ask(model, text, **options)
        self.assertIs(type(caught.exception), error)
        return caught.exception

    def test_a_wrong_key_is_an_authentication_error(self):
        for sdk in [Openai, Anthropic]:
            with self.subTest(sdk.prefix):
                error = self.raised(
                    sdk, sdk.errors.AuthenticationError, sdk.prefix, key="tg-wrong-key"
                )
                self.assertEqual(error.status_code, 401)
                self.assertNotIn("tg-wrong-key", str(error))

    def test_a_key_for_other_routes_is_a_permission_error(self):
        for sdk, route in [(Openai, "openai-hang"), (Anthropic, "claude")]:
            with self.subTest(sdk.prefix):
                self.raised(sdk, sdk.errors.PermissionDeniedError, route, key=NARROW_KEY)

    def test_an_unknown_model_is_not_found_and_says_what_exists(self):
        for sdk in [Openai, Anthropic]:
            with self.subTest(sdk.prefix):
                error = self.raised(sdk, sdk.errors.NotFoundError, "nobody/knows")
                self.assertIn("nobody/knows", error.message)
                self.assertIn("claude", error.message)

    def test_the_providers_own_complaint_about_a_request_is_relayed(self):
        for sdk in [Openai, Anthropic]:
            with self.subTest(sdk.prefix):
                mark = marked()
                model = f"ebb{sdk.own}/status-400-context-length"
                error = self.raised(sdk, sdk.errors.BadRequestError, model, mark)
                self.assertRegex(error.message, "maximum context length|prompt is too long")
                self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 0})

    def test_other_statuses_raise_the_error_of_their_name(self):
        for sdk in [Openai, Anthropic]:
            for status, name in [
                (409, "ConflictError"),
                (422, "UnprocessableEntityError"),
                (500, "InternalServerError"),
            ]:
                with self.subTest(sdk=sdk.prefix, status=status):
                    model = f"ebb{sdk.own}/status-{status}"
                    error = self.raised(sdk, getattr(sdk.errors, name), model)
                    self.assertEqual(error.status_code, status)

    def test_every_target_limited_is_a_rate_limit_error_without_a_retry(self):
        for sdk in [Openai, Anthropic]:
            with self.subTest(sdk.prefix):
                mark = marked()
                error = self.raised(
                    sdk, sdk.errors.RateLimitError, f"{sdk.prefix}-all-limited", mark
                )
                headers = error.response.headers
                self.assertEqual(headers["x-should-retry"], "false")
                self.assertEqual(headers["x-tidegate-attempts"], "2")
                self.assertGreater(int(headers["retry-after"]), 0)
                self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 1})

    def test_every_target_overloaded_is_relayed_without_a_retry(self):
        for sdk in [Openai, Anthropic]:
            with self.subTest(sdk.prefix):
                mark = marked()
                with self.assertRaises(sdk.errors.InternalServerError) as caught:
                    sdk.ask(f"{sdk.prefix}-all-overloaded", mark)
                self.assertIn(caught.exception.status_code, [503, 529])
                self.assertIn("overloaded", str(caught.exception.body).lower())
                self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 1})

    def test_no_answer_at_all_tells_every_attempt_and_is_not_retried(self):
        for sdk in [Openai, Anthropic]:
            with self.subTest(sdk.prefix):
                mark = marked()
                with self.assertRaises(sdk.errors.InternalServerError) as caught:
                    sdk.ask(f"{sdk.prefix}-all-gone", mark)
                error = caught.exception
                self.assertEqual(error.status_code, 503)
                # The OpenAI SDK hands out what is under `error`, the other the whole body.
                body = error.body.get("error", error.body)
                self.assertEqual(body["type"], "no_healthy_backend")
                targets = [attempt["target"] for attempt in body["attempts"]]
                self.assertEqual(targets, [f"ebb{sdk.own}/not-http", f"flow{sdk.own}/not-http"])
                for attempt in body["attempts"]:
                    self.assertEqual(attempt["outcome"], "transport")
                self.assertEqual(calls_by_provider(mark), {"ebb": 1, "flow": 1})

    def test_errors_carry_the_request_id(self):
        for sdk in [Openai, Anthropic]:
            with self.subTest(sdk.prefix):
                error = self.raised(sdk, sdk.errors.NotFoundError, "nobody/knows")
                self.assertTrue(error.response.headers["x-tidegate-request-id"])

    def test_an_error_before_a_stream_is_raised_like_any_other(self):
        with openai_client() as client, self.assertRaises(openai.RateLimitError):
            client.chat.completions.create(
                model="openai-all-limited", messages=says("hi"), stream=True
            )
        with anthropic_client() as client, self.assertRaises(anthropic.RateLimitError):
            with client.messages.stream(
                model="claude-all-limited", max_tokens=100, messages=says("hi")
            ):
                pass


class AsyncErrorsTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_async_clients_raise_the_same_errors(self):
        async with openai_client(kind=openai.AsyncOpenAI) as client:
            with self.assertRaises(openai.NotFoundError):
                await client.chat.completions.create(model="nobody/knows", messages=says("hi"))
        async with anthropic_client(kind=anthropic.AsyncAnthropic) as client:
            with self.assertRaises(anthropic.NotFoundError):
                await client.messages.create(
                    model="nobody/knows", max_tokens=100, messages=says("hi")
                )
