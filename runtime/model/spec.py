"""A model's architecture as plain numbers, read from a Hugging Face `config.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from runtime.errors import DecdecError
from runtime.model.rope import MAX_DIM, RopeSpec, rope_spec
from runtime.supported import FAMILIES

Activation = Literal["silu", "gelu_tanh"]

_ACTIVATIONS: dict[str, Activation] = {"silu": "silu", "gelu_pytorch_tanh": "gelu_tanh"}
_LIMITS = {
    "vocab_size": 1 << 21,
    "hidden_size": 1 << 17,
    "intermediate_size": 1 << 19,
    "num_hidden_layers": 1024,
    "num_attention_heads": 1 << 14,
}


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """What differs between blocks: sliding window (tokens, None = full) and which rope table."""

    window: int | None
    rope: int


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Sizes and switches of a Llama-family decoder."""

    family: str
    vocab_size: int
    hidden: int
    intermediate: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    norm_eps: float
    norm_offset: float
    activation: Activation
    tied: bool
    attention_scale: float
    embedding_scale: float
    qk_norm: bool
    post_norms: bool
    context: int
    layers: tuple[LayerSpec, ...]
    ropes: tuple[RopeSpec, ...]

    def __post_init__(self) -> None:
        for name, value, limit in (
            ("num_key_value_heads", self.n_kv_heads, self.n_heads),
            ("head_dim", self.head_dim, MAX_DIM),
            ("max_position_embeddings", self.context, 1 << 31),
            ("rms_norm_eps", self.norm_eps, 1.0),
        ):
            if not 0 < value <= limit:
                raise _implausible(name, value)
        if self.n_heads % self.n_kv_heads:
            raise DecdecError(
                "The model's configuration is inconsistent",
                f"{self.n_heads} query heads cannot share {self.n_kv_heads} key/value heads",
            )

    @property
    def q_size(self) -> int:
        """Width of all query heads."""
        return self.n_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all key (or value) heads."""
        return self.n_kv_heads * self.head_dim

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> ModelSpec:
        """Read a config dict; raises DecdecError naming the field when it is missing, odd or unsupported."""
        config = config.get("text_config", config) if config.get("model_type") == "gemma3" else config
        try:
            return _read(config)
        except KeyError as error:
            raise DecdecError("The model's configuration is incomplete", f"{error} is missing") from error
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise DecdecError("The model's configuration could not be read", str(error)) from error


def _read(c: dict[str, Any]) -> ModelSpec:
    family = str(c.get("model_type"))
    if family not in FAMILIES:
        raise DecdecError(f"Models of type {family!r} are not supported", f"known are {', '.join(FAMILIES)}")
    for name, limit in _LIMITS.items():
        if not 0 < int(c[name]) <= limit:
            raise _implausible(name, c[name])
    gemma = family == "gemma3_text"
    n_heads = int(c["num_attention_heads"])
    head_dim = int(c.get("head_dim") or c["hidden_size"] // n_heads)
    layers, ropes = _layers(c, head_dim)
    return ModelSpec(
        family=family,
        vocab_size=int(c["vocab_size"]),
        hidden=int(c["hidden_size"]),
        intermediate=int(c["intermediate_size"]),
        n_heads=n_heads,
        n_kv_heads=int(c.get("num_key_value_heads") or n_heads),
        head_dim=head_dim,
        norm_eps=float(c.get("rms_norm_eps", 1e-6)),
        norm_offset=1.0 if gemma else 0.0,
        activation=_activation(c),
        tied=bool(c.get("tie_word_embeddings", gemma)),
        attention_scale=float(c["query_pre_attn_scalar"] if gemma else head_dim) ** -0.5,
        embedding_scale=int(c["hidden_size"]) ** 0.5 if gemma else 1.0,
        qk_norm=family in ("qwen3", "gemma3_text"),
        post_norms=gemma,
        context=_context(c),
        layers=layers,
        ropes=ropes,
    )


def _implausible(name: str, value: object) -> DecdecError:
    return DecdecError("The model's configuration is not plausible", f"{name} is {str(value)[:40]}")


def _activation(c: dict[str, Any]) -> Activation:
    name = c.get("hidden_activation") or c.get("hidden_act") or "silu"
    if name not in _ACTIVATIONS:
        raise DecdecError(f"Activation {name!r} is not supported", f"known are {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[name]


def _rope_parameters(c: dict[str, Any]) -> dict[str, Any]:
    """`rope_parameters` of transformers 5, or the older `rope_theta` + `rope_scaling`."""
    parameters = dict(c.get("rope_parameters") or {})
    if not parameters:
        scaling = dict(c.get("rope_scaling") or {})
        parameters = {**scaling, "rope_type": scaling.get("rope_type", scaling.get("type", "default"))}
    parameters.setdefault("rope_theta", c.get("rope_theta", 10000.0))
    if "partial_rotary_factor" in c:
        parameters.setdefault("partial_rotary_factor", c["partial_rotary_factor"])
    if "original_max_position_embeddings" in c:
        parameters.setdefault("original_max_position_embeddings", c["original_max_position_embeddings"])
    return parameters


def _context(c: dict[str, Any]) -> int:
    """The usable context. Longrope's long factors are not used, so it ends where they would begin."""
    limit = int(c.get("max_position_embeddings") or 2048)
    parameters = _rope_parameters(c)
    if parameters.get("rope_type") == "longrope":
        return min(limit, int(parameters["original_max_position_embeddings"]))
    return limit


def _layers(c: dict[str, Any], head_dim: int) -> tuple[tuple[LayerSpec, ...], tuple[RopeSpec, ...]]:
    count, context = int(c["num_hidden_layers"]), int(c.get("max_position_embeddings") or 2048)
    if c["model_type"] != "gemma3_text":
        window = _window(c)
        kinds = c.get("layer_types") or ["sliding_attention" if window else "full_attention"] * count
        specs = tuple(LayerSpec(window if kind == "sliding_attention" else None, 0) for kind in kinds)
        return _counted(specs, count), (rope_spec(_rope_parameters(c), head_dim, context),)
    local, full = _gemma_ropes(c)
    kinds = c.get("layer_types") or _gemma_pattern(c, count)
    specs = tuple(
        LayerSpec(int(c["sliding_window"]), 0) if kind == "sliding_attention" else LayerSpec(None, 1)
        for kind in kinds
    )
    return _counted(specs, count), (rope_spec(local, head_dim, context), rope_spec(full, head_dim, context))


def _counted(specs: tuple[LayerSpec, ...], count: int) -> tuple[LayerSpec, ...]:
    if len(specs) != count:
        raise DecdecError(
            "The model's configuration is inconsistent", f"{len(specs)} layer types, {count} layers"
        )
    return specs


def _window(c: dict[str, Any]) -> int | None:
    if c["model_type"].startswith("qwen") and not c.get("use_sliding_window"):
        return None
    return int(c["sliding_window"]) if c.get("sliding_window") else None


def _gemma_ropes(c: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    parameters = c.get("rope_parameters") or {}
    if "full_attention" in parameters:
        return dict(parameters["sliding_attention"]), dict(parameters["full_attention"])
    local = {"rope_theta": c.get("rope_local_base_freq", 10000.0)}
    return local, _rope_parameters({**c, "rope_theta": c.get("rope_theta", 1_000_000.0)})


def _gemma_pattern(c: dict[str, Any], count: int) -> list[str]:
    period = int(c.get("sliding_window_pattern") or c.get("_sliding_window_pattern") or 6)
    return ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(count)]
