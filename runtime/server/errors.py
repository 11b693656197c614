"""Errors in the shape that OpenAI's clients know: one sentence, a status, a code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from runtime.errors import DecdecError

# What of the engine's sentences blames the conversation; the rest is the server's fault.
CONVERSATION_FAULTS = {
    "The question does not fit": "context_length_exceeded",
    "There is nothing to answer": "no_question",
    "The model's chat template refuses this conversation": "conversation_refused",
}
# Official clients ask again after a 5xx, which a crash or a shortage of memory would only repeat.
NO_RETRY = {"x-should-retry": "false"}
# What else comes on such a connection is not to be read as a request.
CLOSE = {"connection": "close"}
_LONG_NUMBER = re.compile(r"-?\d{25,}")


class ApiError(Exception):
    """A refusal or a failure as the client gets it. `param`: the field of the request that is to blame."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "error": {"message": self.message, "type": self._kind, "param": self.param, "code": self.code}
        }

    @property
    def response(self) -> JSONResponse:
        """The whole answer."""
        return JSONResponse(self.body, self.status, self.headers)

    @property
    def _kind(self) -> str:
        if self.status == 429:
            return "rate_limit_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"


def refused(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """A request that cannot be answered as it is; a number of thousands of digits is not said again."""
    return ApiError(400, _LONG_NUMBER.sub("a very long number", message), code, param)


def no_answer(error: DecdecError) -> ApiError:
    """What an answer's failure in the engine means for the client."""
    if code := CONVERSATION_FAULTS.get(error.what):
        return ApiError(400, error.sentence, code, "messages")
    return ApiError(500, error.sentence, "engine_failed", headers=NO_RETRY)


def no_model(error: DecdecError) -> ApiError:
    """A model that is here could not be loaded."""
    return ApiError(503, error.sentence, "model_not_loaded", "model", NO_RETRY)


def crashed(error: DecdecError) -> ApiError:
    """The engine's process ended in the middle. Where its log lies is for this machine alone."""
    sentence = DecdecError(error.what, error.why, "ask again, it is started anew").sentence
    return ApiError(500, sentence, "engine_crashed", headers=NO_RETRY)


def stopping() -> ApiError:
    """The server is being ended."""
    return ApiError(503, "The server is stopping.", "stopping", headers=NO_RETRY)


def unexpected() -> ApiError:
    """Anything that nobody thought of; the server's log has the details."""
    sentence = "Something unexpected went wrong in this server; its log (logs/server.log) has the details."
    return ApiError(500, sentence, "unexpected", headers=NO_RETRY)
