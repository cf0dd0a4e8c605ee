"""The scene as the tests see it: clients, and what the fake providers received.

Clients are made as a user makes them: a base url and a key. Only the timeout is set too, so that
a hanging gateway fails a test instead of stopping the run. Retries stay at the SDKs' default,
because whether an SDK retries is part of what is tested.
"""

import base64
import json
import os
import urllib.request
import uuid

import anthropic
import openai
from google import genai

URL = os.environ["TIDEGATE_URL"]
KEY = os.environ["TIDEGATE_KEY"]
NARROW_KEY = os.environ["TIDEGATE_NARROW_KEY"]
PROVIDERS = {"ebb": os.environ["EBB_URL"], "flow": os.environ["FLOW_URL"]}
TIMEOUT_S = 20

# One pixel, as small as a PNG gets.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


def openai_client(key=KEY, kind=openai.OpenAI):
    return kind(base_url=f"{URL}/v1", api_key=key, timeout=TIMEOUT_S)


def anthropic_client(key=KEY, kind=anthropic.Anthropic):
    return kind(base_url=URL, api_key=key, timeout=TIMEOUT_S)


def gemini_client(key=KEY):
    options = genai.types.HttpOptions(base_url=URL, timeout=TIMEOUT_S * 1000)
    return genai.Client(api_key=key, http_options=options)


def pixel_bytes():
    return base64.b64decode(PIXEL)


def marked(text="good morning"):
    """A text that no other request of any run contains, to find its calls by."""
    return f"{text} {uuid.uuid4().hex}"


def says(text):
    """The messages of a chat, in both dialects."""
    return [{"role": "user", "content": text}]


def calls(provider, mark):
    """The calls that a fake provider received with this text in their body, as dictionaries."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{PROVIDERS[provider]}/__calls", timeout=TIMEOUT_S) as answer:
        received = json.load(answer)["calls"]
    return [call for call in received if mark in call["body"]]


def calls_by_provider(mark):
    return {name: len(calls(name, mark)) for name in PROVIDERS}
