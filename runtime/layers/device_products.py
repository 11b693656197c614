"""One product of whatever kind of weights a GPU holds."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from kernels.gpu.dec.fetch import Fetch
from kernels.gpu.dense.weights import DenseWeights
from kernels.gpu.digits import Extras
from kernels.gpu.lowbit.group_product import default_config, group_product
from kernels.gpu.lowbit.groups import DeviceGroups
from kernels.gpu.lowbit.table_product import default_table_config, table_extras, table_product
from kernels.gpu.lowbit.tables import DeviceTables
from kernels.gpu.planes import DevicePlanes
from kernels.gpu.prepare import Prepared
from kernels.gpu.product import EXTRAS as PLANE_EXTRAS
from kernels.gpu.product import STORE, Epilogue, ProductConfig, product
from kernels.gpu.product import default_config as default_planes_config

# Weights whose products take prepared activations.
PackedWeights = DeviceGroups | DeviceTables | DevicePlanes
Weights = PackedWeights | DenseWeights


def multiply_prepared(
    weights: PackedWeights,
    prepared: Prepared,
    out: Tensor,
    fetch: Fetch | None = None,
    config: ProductConfig | None = None,
    epilogue: Epilogue = STORE,
) -> Tensor:
    """The product of whatever kind of packed weights, into `out` [used, n_out]."""
    options: dict[str, Any] = {"out": out, "config": config, "epilogue": epilogue, "fetch": fetch}
    if isinstance(weights, DeviceGroups):
        return group_product(weights, prepared, **options)
    if isinstance(weights, DeviceTables):
        return table_product(weights, prepared, **options)
    return product(weights, prepared, **options)


def extras_of(weights: PackedWeights) -> Extras:
    """What a product with them needs of a prepared input."""
    if isinstance(weights, DeviceGroups):
        return Extras.GROUP_SUMS
    return table_extras(weights) if isinstance(weights, DeviceTables) else PLANE_EXTRAS


def product_warps(weights: Weights) -> int:
    """Warps in a program of the product, when its launch is the kernels' own choice."""
    if isinstance(weights, DeviceGroups):
        return default_config(weights).warps
    if isinstance(weights, DeviceTables):
        return default_table_config(weights).warps
    if isinstance(weights, DevicePlanes):
        return default_planes_config(weights).warps
    raise ValueError("dense products fetch nothing")
