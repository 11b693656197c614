"""The models that a server offers, and those among them that somebody looks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from app import format
from runtime.protocol.commands import Job

LIST = Job("server_models")


class ServerModel(msgspec.Struct, frozen=True):
    """`id`: the server's name of it. `context`: tokens of a conversation, 0 for unknown."""

    id: str
    context: int = 0

    @property
    def facts(self) -> str:
        """What is known beside the name; empty where that is nothing."""
        return f"context {format.number(self.context)}" if self.context else ""


def offered(result: dict[str, Any]) -> tuple[ServerModel, ...]:
    """From the result of the job `LIST`."""
    return msgspec.convert(result.get("models", ()), tuple[ServerModel, ...])


def matching(models: Sequence[ServerModel], words: str) -> list[ServerModel]:
    """Those whose name holds every word, in the server's order."""
    wanted = words.lower().split()
    return [model for model in models if all(word in model.id.lower() for word in wanted)]


def headline(models: Sequence[ServerModel] | None) -> str:
    """What stands above the list; None: the server did not answer yet."""
    if models is None:
        return "Asking the server for its models …"
    return "Models of the server" if models else "The server lists no models: type a name"
