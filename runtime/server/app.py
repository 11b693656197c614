"""The endpoints: what comes in by HTTP becomes an order in the line, and what is refused a sentence."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import DecdecError
from runtime.server import errors
from runtime.server.access import Gate
from runtime.server.answer import AnswerResponse
from runtime.server.engine import Engine
from runtime.server.errors import CLOSE, ApiError
from runtime.server.fields import parse
from runtime.server.line import Line, Order
from runtime.server.models import Models
from runtime.server.replies import Answer
from runtime.server.settings import Limits, Settings

JSON_TYPE = "application/json"
CHAT = "/v1/chat/completions"
READ_ON = 8
SHAPED = (ApiError, HTTPException, DecdecError, ClientDisconnect, Exception)


class Endpoints:
    """Handlers of all paths."""

    def __init__(self, settings: Settings, engine: Engine, line: Line) -> None:
        self._settings, self._engine, self._line = settings, engine, line
        self._models = Models(settings.load.model, settings.load.base)

    async def chat(self, request: Request) -> ASGIApp:
        """One answer, whole or as a stream."""
        asked = parse(await read_json(request, self._settings.limits))
        command, slide = asked.command(), asked.slide()
        model = await asyncio.to_thread(self._models.named, asked.model)
        ticket = self._line.join(Order(model, command, slide))
        answer = Answer(model, self._settings.load.base)
        silence_s = self._settings.limits.silence_s
        return AnswerResponse(ticket, answer, bool(asked.stream), asked.includes_usage, silence_s)

    async def models(self, request: Request) -> Response:
        """What can be asked for."""
        documents = await asyncio.to_thread(self._models.documents, self._engine.loaded)
        return JSONResponse({"object": "list", "data": documents})

    async def model(self, request: Request) -> Response:
        """One of them."""
        name = request.path_params["name"]
        return JSONResponse(await asyncio.to_thread(self._models.document, name, self._engine.loaded))

    async def health(self, request: Request) -> Response:
        """Whether answers can be had, and how many wait."""
        state = self._engine.state
        return JSONResponse({"status": state, "waiting": self._line.waiting}, 200 if state == "ok" else 503)


class Crowd:
    """Middleware: at most so many requests at once, for each may hold a body in memory."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit, self._inside = app, limit, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, or refuse."""
        if self._inside >= self._limit:
            full = ApiError(503, f"{self._limit} requests are open already.", "too_many_requests")
            await full.response(scope, receive, send)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1


def build_app(settings: Settings, engine: Engine, line: Line) -> Starlette:
    """The ASGI application."""
    ends = Endpoints(settings, engine, line)
    return Starlette(
        routes=[
            Route(CHAT, ends.chat, methods=["POST"]),
            Route("/v1/models", ends.models),
            Route("/v1/models/{name:path}", ends.model),
            Route("/health", ends.health),
        ],
        middleware=_middleware(settings),
        exception_handlers=dict.fromkeys(SHAPED, answer_error),
    )


def _middleware(settings: Settings) -> list[Middleware]:
    """From the outside to the inside. A browser asks without the key whether it may ask at all."""
    access = settings.access
    layers = [Middleware(Gate, refusal=access.stranger)]
    if origins := sorted(access.origins):
        methods = ("GET", "POST")
        layers.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=methods, allow_headers=("*",))
        )
    return [
        *layers,
        Middleware(Gate, refusal=access.keyless, delay_s=settings.limits.wrong_key_s),
        Middleware(Crowd, limit=settings.limits.requests),
    ]


async def read_json(request: Request, limits: Limits) -> bytes:
    """The body; ApiError where it is no JSON by its label, too large, or too slow."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        raise ApiError(415, f"The body must be JSON: send Content-Type: {JSON_TYPE}.", "not_json")
    try:
        async with asyncio.timeout(limits.body_s):
            body, size = await _read(request, limits.body_bytes)
    except TimeoutError as error:
        late = f"The request was not whole after {limits.body_s:g} s."
        raise ApiError(408, late, "too_slow", headers=CLOSE) from error
    if size > limits.body_bytes:
        sentence = f"The request is larger than {limits.body_bytes} bytes: shorten the conversation."
        raise ApiError(413, sentence, "too_large", headers=CLOSE)
    return body


async def _read(request: Request, limit: int) -> tuple[bytes, int]:
    """The body and its size, counted as it comes, whatever its label says.

    What is too large is let go at once, but read on for a while: most clients read no answer before they
    have sent everything.
    """
    body, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size <= limit:
            body += piece
        else:
            body.clear()
        if size > READ_ON * limit:
            break
    return bytes(body), size


async def answer_error(request: Request, error: Exception) -> Response:
    """Any exception as a document of OpenAI's shape."""
    return _shaped(error).response


def _shaped(error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case DecdecError():
            return ApiError(500, error.sentence, headers=errors.NO_RETRY)
        case HTTPException(status_code=404):
            known = f"POST {CHAT}, GET /v1/models and GET /health"
            return ApiError(404, f"There is nothing at this path; there are {known}.", "no_such_path")
        case HTTPException(status_code=405):
            return ApiError(405, "This path does not take this method.", headers=error.headers)
        case HTTPException():
            return ApiError(error.status_code, f"{error.detail.rstrip('.')}.", headers=error.headers)
        case ClientDisconnect():
            return ApiError(499, "The client has left.")
    return errors.unexpected()
