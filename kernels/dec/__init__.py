"""Low-bit bases, their residuals and the choice of corrected channels: plain torch references and packing."""

from kernels.dec.chunks import CHUNK, chunk_bounds, chunk_share
from kernels.dec.clipping import quantise_clipped
from kernels.dec.feedback import round_with_feedback
from kernels.dec.int4op import OP_GROUPS, int4_op_codes, int4_op_group, int4_op_tables
from kernels.dec.packing import pack_codes, packed_width, unpack_codes
from kernels.dec.refinement import refine
from kernels.dec.residual import (
    Residual,
    dequantise_residual,
    pack_nibbles,
    quantise_residual,
    unpack_nibbles,
)
from kernels.dec.rtn import GROUP, GroupCodes, dequantise, group_count, quantise_rtn
from kernels.dec.selection import bucket_bounds, bucket_mask, exact_mask, random_mask, static_mask
from kernels.dec.table import TableCodes, dequantise_table

__all__ = [
    "CHUNK",
    "GROUP",
    "OP_GROUPS",
    "GroupCodes",
    "Residual",
    "TableCodes",
    "bucket_bounds",
    "bucket_mask",
    "chunk_bounds",
    "chunk_share",
    "dequantise",
    "dequantise_residual",
    "dequantise_table",
    "exact_mask",
    "group_count",
    "int4_op_codes",
    "int4_op_group",
    "int4_op_tables",
    "pack_codes",
    "pack_nibbles",
    "packed_width",
    "quantise_clipped",
    "quantise_residual",
    "quantise_rtn",
    "random_mask",
    "refine",
    "round_with_feedback",
    "static_mask",
    "unpack_codes",
    "unpack_nibbles",
]
