"""Models of a hub by words in their names: those this program can use, as far as the hub tells.

Light by contract but for the job itself: the front end reads its results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import msgspec

from runtime.download.errors import StatusError
from runtime.download.http import Address
from runtime.download.limits import Limits
from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.sources import hub_api
from runtime.supported import FAMILIES, QUANTISED_KEYS

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

LIMIT = 50
_LIMITS = Limits(tries=1, answer_s=15.0)
# Many times what a hub sends of so many models; one document of a hub's lists may be larger.
_MAX_BYTES = 2 << 20
_TASK = "text-generation"
_FIELDS = ("config", "downloads", "gated", "library_name", "pipeline_tag", "safetensors", "tags")
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
# Marks of weights that are quantised already, or no weights of a whole model.
_QUANTISED_TAGS = frozenset(
    {"4-bit", "8-bit", "awq", "gptq", "bitsandbytes", "compressed-tensors", "fp8", "mlx"}
)
_BITS = re.compile(r"\D*(\d{1,3})(?!\d)", re.ASCII)
_ADAPTERS = frozenset({"peft", "adapter-transformers"})


_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]


class FoundModel(msgspec.Struct, frozen=True):
    """A repository of a hub. `bytes` of its weights, 0 where the hub does not tell; so with `licence`."""

    repo: str
    downloads: _Count = 0
    bytes: _Count = 0
    gated: bool = False
    licence: str = ""


class Found(msgspec.Struct, frozen=True):
    """What a search gave; `left_out`: how many more there were that this program cannot use."""

    words: str
    hub: str
    models: tuple[FoundModel, ...] = ()
    left_out: int = 0


def search(args: dict[str, Any], ctx: JobContext) -> dict[str, Any]:
    """The worker's job: `words` to look for; the result is a `Found`, most downloads first.

    Raises DecdecError; UnreachableError when offline.
    """
    words = str(args.get("words", "")).strip()
    if not words:
        raise DecdecError("There is nothing to search for", "", "type a part of a model's name")
    ctx.check()
    with _explained():
        hub, infos = _ask(words, ctx)
        models = tuple(_found(info) for info in infos if is_usable(info))
        found = Found(words, hub, models, len(infos) - len(models))
        result: dict[str, Any] = msgspec.to_builtins(found)
        # The hub's own library believes what it is told.
        msgspec.convert(result, Found)
    return result


def is_usable(info: ModelInfo) -> bool:
    """Whether a repository may hold a model for this program: what the hub does not tell counts as yes."""
    tags, config = set(info.tags or []), info.config or {}
    family = config.get("model_type") or next((tag for tag in tags if tag in FAMILIES), FAMILIES[0])
    return (
        _REPO.fullmatch(info.id) is not None
        and info.pipeline_tag in (None, _TASK)
        and (not tags or "safetensors" in tags)
        and family in FAMILIES
        and info.library_name not in _ADAPTERS
        and not tags & _QUANTISED_TAGS
        and not any(config.get(key) for key in QUANTISED_KEYS)
    )


def weight_bytes(parameters: Mapping[str, int]) -> int:
    """Bytes of weights counted by their type as safetensors spells it: BF16, F8_E4M3, I32."""
    # What comes from a hub may be anything: a text by a number of bits would be as many texts.
    counts = msgspec.convert(parameters, dict[str, int])
    bits = {dtype: _BITS.match(dtype) for dtype in counts}
    return sum(count * int(found[1]) // 8 for dtype, count in counts.items() if (found := bits[dtype]))


def _ask(words: str, ctx: JobContext) -> tuple[str, list[ModelInfo]]:
    """The hub, and what it lists. No second try: somebody waits for it."""
    from huggingface_hub.hf_api import ModelInfo

    hub = hub_api.settings("The hub was not searched")
    params = {"search": words, "pipeline_tag": _TASK, "filter": "safetensors", "sort": "downloads"}
    query = urlencode({**params, "limit": LIMIT, "expand": _FIELDS}, doseq=True)
    address = Address(f"{hub.url}/api/models?{query}", hub.headers, server=hub.shown)
    document = hub_api.ask(address, "The search", ctx.check, _LIMITS, _MAX_BYTES)
    listed = msgspec.json.decode(document.body, type=list[dict[str, Any]])
    return hub.shown, [ModelInfo(**{"siblings": None, **item}) for item in listed[:LIMIT]]


def _found(info: ModelInfo) -> FoundModel:
    licences = [tag.removeprefix("license:") for tag in info.tags or [] if tag.startswith("license:")]
    return FoundModel(
        repo=info.id,
        downloads=int(info.downloads or 0),
        bytes=weight_bytes(info.safetensors.parameters) if info.safetensors else 0,
        gated=bool(info.gated),
        licence=licences[0] if licences else "",
    )


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except StatusError as error:
        raise DecdecError(
            error.what, error.why, "check HF_ENDPOINT and HF_TOKEN, or type owner/name"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise DecdecError(
            "The hub's answer could not be understood", str(error)[:200], "check HF_ENDPOINT"
        ) from error
