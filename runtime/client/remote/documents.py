"""What a server says, read without trust: bounded, checked, and forgiving only where it does not matter."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from runtime.errors import DecdecError
from runtime.protocol.events import KChunk

MAX_MODELS, MAX_NAME = 5000, 300
END = "[DONE]"
# Where servers tell how many tokens a conversation may have: vLLM, llama.cpp, hosted ones, our own.
_CONTEXT_FIELDS = (
    "max_model_len",
    "n_ctx",
    "context_length",
    "context_window",
    "max_context_length",
    "context_limit",
)
_TRAINED_FIELD = "n_ctx_train"
MAX_CONTEXT = 1 << 31

T = TypeVar("T")


class RemoteModel(msgspec.Struct, frozen=True):
    """A model that a server offers. `context`: tokens, 0 where the server does not tell. `loaded`: it says
    that this one is in memory.
    """

    id: str
    context: int = 0
    owner: str = ""
    loaded: bool = False


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the server counts them; 0 where it does not tell. A completion includes its reasoning."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reused_tokens: int = 0
    reasoning_tokens: int = 0


class Figures(msgspec.Struct, frozen=True):
    """What `decdec-chat serve` tells of an answer, and no other server."""

    slowdown_target_pct: float = 0.0
    slowdown_measured_pct: float | None = None
    k_chunk: KChunk = KChunk()
    channels_corrected: int = 0
    dropped_messages: int = 0


class Piece(msgspec.Struct, frozen=True):
    """One event of an answer's stream. `failure`: the server's own words when it gave up in mid-answer.

    `last`: nothing follows.
    """

    text: str = ""
    reasoning: str = ""
    finish_reason: str = ""
    usage: Usage | None = None
    figures: Figures | None = None
    failure: str = ""
    last: bool = False


class _Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None


class _Choice(msgspec.Struct):
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    decdec: Any = None
    error: Any = None


class _Listing(msgspec.Struct):
    data: list[dict[str, Any]] | None = None
    models: list[dict[str, Any]] | None = None


def read_piece(data: str | bytes) -> Piece:
    """One event's data, or the whole completion of a server that does not stream. DecdecError otherwise."""
    if data == END:
        return Piece(last=True)
    chunk = _decoded(_Chunk, data, "no chat completion")
    if chunk.error is not None:
        return Piece(failure=_error_text(chunk.error) or "it did not say why")
    usage = _usage(chunk.usage)
    if not chunk.choices:
        return Piece(usage=usage)
    choice = chunk.choices[0]
    said = choice.delta or choice.message or _Message()
    return Piece(
        text=_text(said.content) or _text(said.refusal),
        reasoning=_text(said.reasoning_content) or _text(said.reasoning),
        finish_reason=choice.finish_reason or "",
        usage=usage,
        figures=_figures(chunk.decdec),
    )


def read_models(body: bytes) -> tuple[RemoteModel, ...]:
    """The models of `GET /v1/models`. DecdecError for anything else."""
    listing = _decoded(_Listing, body, "no list of models")
    if listing.data is None and listing.models is None:
        raise _unreadable("no list of models")
    found = [_model(entry) for entry in (listing.data or listing.models or [])[:MAX_MODELS]]
    return tuple(model for model in found if model is not None)


def read_context(body: bytes) -> int:
    """The context that llama.cpp's `/props` tells of, 0 where it does not."""
    try:
        props = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return 0
    settings = props.get("default_generation_settings")
    return _count(settings.get("n_ctx")) if isinstance(settings, dict) else 0


def read_error(body: bytes, content_type: str = "") -> str:
    """A refusal in the server's own words, on one line; empty where it used none that a person could read."""
    text = body.decode("utf-8", "replace").strip()
    if "html" in content_type or text[:1] == "<":
        return "its answer is a web page"
    try:
        return _error_text(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return _line(text)


def whole(text: str) -> tuple[str, str]:
    """Text that can be shown, and half a character at its end whose other half is still to come.

    Servers that count in UTF-16 cut an emoji in two; a half that stays alone becomes U+FFFD.
    """
    held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    ready = text.removesuffix(held)
    return ready.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), held


def _decoded(form: type[T], data: str | bytes, instead: str) -> T:
    try:
        # Not msgspec's own reader, which takes no half characters.
        return msgspec.convert(json.loads(data), form)
    except (ValueError, RecursionError):
        raise _unreadable(instead) from None


def _unreadable(instead: str) -> DecdecError:
    fix = "check that its address leads to an OpenAI-compatible API"
    return DecdecError("The server sent something unreadable", f"it is {instead}", fix)


def _model(entry: dict[str, Any]) -> RemoteModel | None:
    name = entry.get("id") or entry.get("model") or entry.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME:
        return None
    own, meta, status = (_part(entry, name) for name in ("decdec", "meta", "status"))
    fields = (*_CONTEXT_FIELDS, _TRAINED_FIELD)
    counts = (_count(place.get(field)) for field in fields for place in (entry, own, meta))
    owner = entry.get("owned_by")
    loaded = own.get("loaded") is True or status.get("value") == "loaded"
    return RemoteModel(name, next(filter(None, counts), 0), owner if isinstance(owner, str) else "", loaded)


def _part(entry: dict[str, Any], name: str) -> dict[str, Any]:
    part = entry.get(name)
    return part if isinstance(part, dict) else {}


def _usage(given: Any) -> Usage | None:
    if not isinstance(given, dict):
        return None
    return Usage(
        _count(given.get("prompt_tokens")),
        _count(given.get("completion_tokens")),
        _count(_part(given, "prompt_tokens_details").get("cached_tokens")),
        _count(_part(given, "completion_tokens_details").get("reasoning_tokens")),
    )


def _figures(given: Any) -> Figures | None:
    try:
        return None if given is None else msgspec.convert(given, Figures)
    except msgspec.ValidationError:
        return None


def _count(value: Any) -> int:
    plain = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_CONTEXT
    return int(value) if plain else 0


def _text(value: Any) -> str:
    """Text, or the texts of a list of parts."""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _error_text(value: Any, depth: int = 5) -> str:
    """The sentence in an error document, whatever shape it has; nested further than this it is none."""
    if isinstance(value, str):
        return _line(value)
    if not depth or not isinstance(value, dict | list):
        return ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_error_text(part, depth - 1) for part in value[:3])))
    texts = (_error_text(value.get(key), depth - 1) for key in ("error", "message", "msg", "detail"))
    return next(filter(None, texts), "")


def _line(text: str) -> str:
    return " ".join(text.split())
