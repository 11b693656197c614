"""How much each weight of a decoder's linears matters: the diagonal of the Fisher information, in factors."""

from runtime.sensitivity.fisher import BlockSensitivity, Each, measure
from runtime.sensitivity.linear import Sensitivity
from runtime.sensitivity.stored import read_sensitivities, write_sensitivities

__all__ = [
    "BlockSensitivity",
    "Each",
    "Sensitivity",
    "measure",
    "read_sensitivities",
    "write_sensitivities",
]
