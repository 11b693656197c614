"""Which of a server's models answers, and what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.client.remote import failures
from runtime.client.remote.documents import RemoteModel, read_context, read_models
from runtime.client.remote.failures import Refused
from runtime.client.remote.server import Server
from runtime.errors import DecdecError
from runtime.protocol.events import Loaded

if TYPE_CHECKING:
    from runtime.client.remote.connection import Connection

UNTUNED = "it belongs to a local model, and a server answers here"
_SHOWN = 5
_NO_LISTING = (404, 405, 501)
# Models that turn texts into numbers stand in the same list.
_NO_CHAT = ("embed", "rerank", "whisper", "tts-", "dall-e", "moderation")


async def offered(connection: Connection, server: Server) -> tuple[RemoteModel, ...] | None:
    """What the server offers, None where it does not tell. DecdecError where it cannot be asked."""
    try:
        return read_models(await connection.get(f"{server.url}/models"))
    except Refused as refused:
        if refused.status in _NO_LISTING:
            return None
        raise failures.refusal(refused, server) from None


async def load(connection: Connection, server: Server, wanted: str) -> Loaded:
    """The event for the model that was asked for, or that is chosen where none was."""
    models = await offered(connection, server)
    model = choose(models, wanted, server)
    return Loaded(
        model=model.id,
        base="",
        device=f"server {server.host}",
        context_limit=await _context(connection, server, model),
        bytes_in_memory=0,
        untuned_reason=UNTUNED,
        note=_note(server, model, models or (), wanted),
    )


def choose(models: Sequence[RemoteModel] | None, wanted: str, server: Server) -> RemoteModel:
    """The model of this name, with a name alone `name:latest` too; without one the first that is in memory
    or that can chat.

    A name that is not listed is believed, for lists leave out aliases. DecdecError where there is no model.
    """
    if wanted:
        known = {model.id: model for model in models or ()}
        return known.get(wanted) or known.get(f"{wanted}:latest") or RemoteModel(wanted)
    if models is None:
        refused = Refused(404, f"{server.url}/models is not there")
        raise failures.refusal(refused, server)
    if not models:
        fix = "load one there, or name one with --server-model"
        raise DecdecError(f"{server.host} offers no model", "its list is empty", fix)
    able = [model for model in models if _chats(model)] or models
    return next((model for model in able if model.loaded), able[0])


def _chats(model: RemoteModel) -> bool:
    return not any(word in model.id.lower() for word in _NO_CHAT)


def _note(server: Server, model: RemoteModel, models: Sequence[RemoteModel], wanted: str) -> str:
    """What a person would not expect."""
    notes = []
    if server.exposes_key:
        notes.append(f"The API key goes to {server.host} unencrypted: https:// would protect it.")
    names = [other.id for other in models]
    if models and model.id not in names:
        notes.append(f"{server.host} does not list {model.id}; it lists {_some(names)}.")
    elif not wanted and len(models) > 1:
        notes.append(f"{server.host} offers {_some(names)}; --server-model chooses.")
    return " ".join(notes)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


async def _context(connection: Connection, server: Server, model: RemoteModel) -> int:
    """Tokens of a conversation; llama.cpp lists what the model was trained with and runs with less."""
    if model.owner != "llamacpp":
        return model.context
    try:
        return read_context(await connection.get(f"{server.root}/props")) or model.context
    except (DecdecError, Refused):
        return model.context
