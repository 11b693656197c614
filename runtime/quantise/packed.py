"""An existing AWQ or GPTQ checkpoint as the base of a reference checkpoint.

AWQ multiplies a linear's columns by factors s and divides whatever comes before by them: the norm before qkv
and gate_up, the rows of v before o, the rows of up before down. Here the reference's own norms stay, so the
factors are recovered and undone: a linear gets `columns` s, by which its input is divided, and v and up get
their rows back.

- qkv, gate_up: s is the ratio of the two checkpoints' norm weights.
- o, down: 1 / s_i is the least-squares factor that brings column i of the base B nearest to W,
  sum(W B) / sum(B B), where that explains W better than 1 does; the rows of v and up likewise.

Every factor may be a little off, for the residual is W diag(s) - B with just these factors.
"""

from __future__ import annotations

import torch

from kernels.dec.rtn import GroupCodes, dequantise
from runtime.checkpoint import Checkpoint
from runtime.checkpoint.files import shown
from runtime.checkpoint.packed import PackedCheckpoint
from runtime.checkpoint.packed_linear import PackedLinear, stacked
from runtime.errors import DecdecError
from runtime.layers.base import LINEAR_KINDS, LinearKind
from runtime.model import weights
from runtime.model.spec import ModelSpec

Base = tuple[GroupCodes, torch.Tensor | None]

# Fitting n factors to noise takes 1/n of its energy off; what takes this much off is a factor.
EXPLAINED = 0.02
# Norms stored in float16 instead of bfloat16 differ by less than this.
ROUNDING = 2.0**-8
# Groups of 4 bits lose a tenth of a matrix, in norm; another matrix has nothing in common with it.
MOST_LOST = 0.5
LEAST = 0.5


def _nearest(weight: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Factors float32 [n]: base * factors [:, None] is nearest to weight, row by row; 1 for an empty row.

    A row that is mostly noise would shrink to nothing, and the residual's scale with it: it is treated as if
    its correlation were LEAST.
    """
    energy, likeness = base.square().sum(1), (weight * base).sum(1)
    factors = likeness.maximum(LEAST * (energy * weight.square().sum(1)).sqrt()) / energy
    return torch.where(factors.isfinite() & (factors > 0), factors, torch.ones_like(factors))


def _explained(weight: torch.Tensor, base: torch.Tensor) -> torch.Tensor | None:
    """The factors of `_nearest`; None where they bring the base hardly nearer than it is."""
    factors = _nearest(weight, base)
    lost, left = (weight - base).square().sum(), (weight - base * factors[:, None]).square().sum()
    return factors if bool(left < (1 - EXPLAINED) * lost) else None


def read_packed(packed: PackedCheckpoint, reference: Checkpoint, block: int) -> dict[LinearKind, Base]:
    """The four fused linears of a block: base, and column factors float32 [n_in] or None.

    The base stands for `W * columns`, W being the reference's fused matrix. Raises DecdecError naming the
    tensor that is missing, damaged, or not a quantised form of the reference's.
    """
    spec = ModelSpec.from_config(reference.config)
    before, after = (weights.block_norms(c, spec, block) for c in (reference, packed))
    ratios: dict[LinearKind, torch.Tensor] = {
        "qkv": before.attention / after.attention,
        "gate_up": before.mlp / after.mlp,
    }
    return {kind: _read(packed, reference, spec, block, kind, ratios.get(kind)) for kind in LINEAR_KINDS}


def _read(
    packed: PackedCheckpoint,
    reference: Checkpoint,
    spec: ModelSpec,
    block: int,
    kind: LinearKind,
    ratio: torch.Tensor | None,
) -> Base:
    names = weights.part_names(spec, block, kind)
    weight = weights.fused_weight(reference, spec, block, kind)
    sizes = [reference.shape(name)[0] for name in names]
    linear = _stacked(packed, names, sizes, weight.shape[1])
    plain = dequantise(linear.base())
    kept = len(weight) - {"qkv": spec.kv_size, "gate_up": spec.intermediate}.get(kind, 0)
    columns = _columns(weight[:kept], plain[:kept], ratio)
    scaled = weight if columns is None else weight * columns
    rows = torch.ones(len(weight))
    if kept < len(weight) and (found := _explained(scaled[kept:], plain[kept:])) is not None:
        rows[kept:] = found
    base = linear.base(rows)
    _require_same(packed, names, sizes, scaled, dequantise(base))
    return base, columns


def _stacked(packed: PackedCheckpoint, names: tuple[str, ...], sizes: list[int], n_in: int) -> PackedLinear:
    return stacked([packed.linear(name, (size, n_in)) for name, size in zip(names, sizes, strict=True)])


def _columns(weight: torch.Tensor, base: torch.Tensor, ratio: torch.Tensor | None) -> torch.Tensor | None:
    """Column factors float32 [n_in] from rows that nothing else scales; None where there are none.

    ratio: of the norms' weights; where one is 0, the matrix has to tell.
    """
    if ratio is None:
        inverse = _explained(weight.t(), base.t())
        return None if inverse is None else 1 / inverse
    factors = torch.where(ratio.isfinite() & (ratio > 0), ratio, 1 / _nearest(weight.t(), base.t()))
    return None if bool(((factors - 1).abs() < ROUNDING).all()) else factors


def _require_same(
    packed: PackedCheckpoint,
    names: tuple[str, ...],
    sizes: list[int],
    scaled: torch.Tensor,
    base: torch.Tensor,
) -> None:
    for name, part, ours in zip(names, scaled.split(sizes), base.split(sizes), strict=True):
        lost = float((part - ours).norm() / part.norm().clamp(min=1e-30))
        if not lost < MOST_LOST:
            raise DecdecError(
                f"The checkpoint in {packed.folder} cannot be a base",
                f"{shown(name)} is not a quantised form of the reference's: {lost:.0%} of it differs",
                "give the checkpoint that it was made from as the reference",
            )
