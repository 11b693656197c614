"""Asking an OpenAI-compatible endpoint: one request, some retries, and an API key that nobody gets to see."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from runtime.errors import DecdecError

TIMEOUT_S = 180.0
MAX_REPLY_BYTES = 4 << 20
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
TRIES = 6
WORTH_RETRYING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
MAX_TOKENS = 2048

Wait: TypeAlias = Callable[[float], None]


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Reply(msgspec.Struct):
    choices: list[_Choice]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another place."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow nothing: the status becomes an error."""
        return


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url`: what the OpenAI libraries call the base URL. `key` is sent, and never shown or stored."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    wait: Wait = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise DecdecError(f"The endpoint {self.url!r} is no http or https address", code=2)

    @classmethod
    def of(cls, url: str, model: str, key_variable: str | None, wait: Wait) -> Endpoint:
        """With the key from an environment variable; DecdecError when that is not set."""
        key = os.environ.get(key_variable, "").strip() if key_variable else ""
        if key_variable and not key:
            raise DecdecError("There is no API key", f"the variable {key_variable} is not set")
        return cls(url, model, key, wait)

    def ask(self, system: str, prompt: str) -> str:
        """The model's reply at temperature 0. Raises DecdecError after the last retry, or for a refusal."""
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
        }
        reason = ""
        for attempt in range(TRIES):
            try:
                return self._text(self._post(json.dumps(body).encode()))
            except _Failure as failure:
                reason = failure.reason
                if not failure.passing:
                    break
                if attempt + 1 < TRIES:
                    self.wait(min(max(FIRST_WAIT_S * 2**attempt, failure.after_s), LONGEST_WAIT_S))
        raise DecdecError(f"{urlsplit(self.url).hostname} did not judge", reason)

    def _post(self, body: bytes) -> bytes:
        path = "" if self.url.endswith("/chat/completions") else "/chat/completions"
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.url.rstrip("/") + path, body, headers)
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as response:
                reply: bytes = response.read(MAX_REPLY_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise self._failure(error) from None
        except (OSError, ValueError) as error:
            raise _Failure(str(getattr(error, "reason", error)), passing=isinstance(error, OSError)) from None
        if len(reply) > MAX_REPLY_BYTES:
            raise _Failure(f"its reply is larger than {MAX_REPLY_BYTES >> 20} MB", passing=False)
        return reply

    def _text(self, reply: bytes) -> str:
        try:
            choices = msgspec.json.decode(reply, type=_Reply).choices
        except msgspec.DecodeError as error:
            raise _Failure(f"its reply is no chat completion: {error}", passing=False) from None
        if not choices or choices[0].message.content is None:
            raise _Failure("its reply holds no text", passing=True)
        return choices[0].message.content

    def _failure(self, error: urllib.error.HTTPError) -> _Failure:
        with error:
            said = error.read(2000).decode("utf-8", "replace")
        if self.key:
            said = said.replace(self.key, "[key]")
        after = error.headers.get("Retry-After", "")
        seconds = float(after) if after.isascii() and after.isdigit() else 0.0
        return _Failure(f"status {error.code}: {said[:300]}", error.code in WORTH_RETRYING, seconds)


class _Failure(Exception):
    """One request that failed; `passing`: another try may do better, not before `after_s`."""

    def __init__(self, reason: str, passing: bool, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason, self.passing, self.after_s = reason, passing, after_s
