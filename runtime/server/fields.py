"""A chat request: what it may hold, what is refused, and the command it becomes."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import msgspec

from runtime.protocol.commands import MAX_SLOWDOWN_PCT, Generate, Message, Role, Sampling, SetSlowdown
from runtime.server.errors import refused

MAX_MESSAGES = 4096
MAX_STOPS = 16
# Text that could be the beginning of a stop is held back, and compared again with every token.
MAX_STOP_CHARACTERS = 1000
MAX_SEED = (1 << 63) - 1
MAX_NAME_SHOWN, MAX_REASON = 40, 150
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
# Fields that would change the answer if they were obeyed: ignoring them would be a lie.
UNSUPPORTED = {
    "tools": "the model is given no tools",
    "functions": "the model is given no functions",
    "logit_bias": "there is no bias for single tokens",
    "logprobs": "probabilities are not given out",
    "top_logprobs": "probabilities are not given out",
    "frequency_penalty": "use repetition_penalty",
    "presence_penalty": "use repetition_penalty",
    "audio": "the model writes text only",
}
# Half of a surrogate pair: written out it would be a question mark, and answers hold those.
_HALF = re.compile("[\ud800-\udfff]")
_MISFIT = re.compile(r"(?s)(.*) - at `\$\.?(.*)`")


class Part(msgspec.Struct, frozen=True):
    """A piece of a message's content."""

    type: str
    text: str | None = None


class ChatMessage(msgspec.Struct, frozen=True):
    """One message as OpenAI's clients send it."""

    role: str
    content: str | list[Part] | None = None
    tool_calls: Any = None


class StreamOptions(msgspec.Struct, frozen=True):
    """`include_usage`: one more chunk at the end, with the tokens that were used."""

    include_usage: bool | None = None


class ChatRequest(msgspec.Struct, frozen=True):
    """The body of a chat completion; fields that are not named here are ignored.

    `slowdown_pct` is our own: where the slider stands for this answer, "lossless" for its last stop.
    """

    messages: list[ChatMessage]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    slowdown_pct: float | Literal["lossless"] | None = None
    response_format: Any = None
    modalities: list[str] | None = None
    tools: Any = None
    functions: Any = None
    logit_bias: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    audio: Any = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the tokens that were used."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def command(self) -> Generate:
        """What the engine is asked; ApiError for what it cannot do."""
        self._check_unsupported()
        _check_range("seed", self.seed, -MAX_SEED, MAX_SEED)
        return Generate(_conversation(self.messages), self._sampling(), self._tokens(), self._stops())

    def slide(self) -> SetSlowdown | None:
        """Where the slider is to stand, None for the server's own place; ApiError for no place of it."""
        if self.slowdown_pct is None:
            return None
        if self.slowdown_pct == "lossless":
            return SetSlowdown(0.0, lossless=True)
        _check_range("slowdown_pct", self.slowdown_pct, 0.0, MAX_SLOWDOWN_PCT)
        return SetSlowdown(self.slowdown_pct)

    def _check_unsupported(self) -> None:
        for name, why in UNSUPPORTED.items():
            if getattr(self, name):
                raise refused(f"{name} is not supported: {why}.", name, "unsupported")
        if self.n not in (None, 1):
            raise refused(f"n must be 1, not {self.n}: there is one answer to a request.", "n", "unsupported")
        if self.modalities not in (None, ["text"]):
            raise refused("The model writes text only.", "modalities", "unsupported")
        form = self.response_format
        if form is not None and (not isinstance(form, dict) or form.get("type") != "text"):
            raise refused("response_format can only be text.", "response_format", "unsupported")

    def _sampling(self) -> Sampling:
        settings = {name: getattr(self, name) for name in Sampling.__struct_fields__}
        try:
            return Sampling(**settings)
        except ValueError as error:
            raise refused(f"{error}.", str(error).partition(" ")[0]) from error

    def _tokens(self) -> int | None:
        for name in ("max_completion_tokens", "max_tokens"):
            if (count := getattr(self, name)) is not None:
                if count < 1:
                    raise refused(f"{name} must be at least 1, not {count}.", name)
                # The context ends an answer long before.
                return int(min(count, 1 << 31))
        return None

    def _stops(self) -> tuple[str, ...]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if len(stops) > MAX_STOPS:
            raise refused(f"stop can hold {MAX_STOPS} texts, not {len(stops)}.", "stop")
        if any(len(stop) > MAX_STOP_CHARACTERS for stop in stops):
            raise refused(f"A text of stop can have {MAX_STOP_CHARACTERS} characters.", "stop")
        if any(_HALF.search(stop) for stop in stops):
            raise refused("A text of stop holds half a character, which no answer does.", "stop")
        return tuple(filter(None, stops))


def parse(body: bytes) -> ChatRequest:
    """The request in a body; ApiError when it is not JSON, or a field is not what it should be."""
    try:
        # Not msgspec's own reader: half a surrogate pair, as JavaScript cuts texts, must not lose a chat.
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise refused(f"The body is not JSON: {_why_unread(error)}.", code="invalid_json") from error
    try:
        return msgspec.convert(document, ChatRequest)
    except UnicodeEncodeError as error:
        raise refused("The body does not fit: it holds half a character where a word is expected.") from error
    except msgspec.ValidationError as error:
        found = _MISFIT.fullmatch(str(error))
        what, where = (found[1], found[2]) if found else (str(error), "")
        what = what.replace("`", "")[:MAX_REASON]
        raise refused(f"{where or 'The body'} does not fit: {what}.", where or None) from error


def _why_unread(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is no text in UTF-8"
    return "a number in it is too long, or it is nested too deeply"


def _check_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        shown = str(value) if isinstance(value, int) else f"{value:g}"
        raise refused(f"{name} must be between {low:g} and {high:g}, not {shown}.", name)


def _conversation(messages: list[ChatMessage]) -> tuple[Message, ...]:
    if not 0 < len(messages) <= MAX_MESSAGES:
        raise refused(f"messages must hold 1 to {MAX_MESSAGES} messages, not {len(messages)}.", "messages")
    read = [_message(message, at) for at, message in enumerate(messages)]
    # Templates know one system message, and it comes first.
    head = next((at for at, message in enumerate(read) if message.role != "system"), len(read))
    if read[-1].role == "system":
        raise refused("The last message must be the user's, or the assistant's to be continued.", "messages")
    system = "\n\n".join(message.content for message in read[:head])
    return (*((Message("system", system),) if head else ()), *read[head:])


def _message(message: ChatMessage, at: int) -> Message:
    where = f"messages[{at}]"
    if message.role not in ROLES:
        known = ", ".join(ROLES)
        raise refused(f"{where}.role {_short(message.role)} is not supported, only {known}.", f"{where}.role")
    if message.tool_calls:
        raise refused(f"{where}.tool_calls is not supported: {UNSUPPORTED['tools']}.", f"{where}.tool_calls")
    return Message(ROLES[message.role], _text(message.content, f"{where}.content"))


def _text(content: str | list[Part] | None, where: str) -> str:
    if content is None:
        raise refused(f"{where} is missing.", where)
    if isinstance(content, str):
        return content
    for part in content:
        if part.type != "text" or part.text is None:
            raise refused(f"{where} has a part {_short(part.type)}: the model reads text only.", where)
    return "\n".join(part.text or "" for part in content)


def _short(name: str) -> str:
    return repr(name[:MAX_NAME_SHOWN])
