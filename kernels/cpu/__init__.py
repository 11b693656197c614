"""The small operations of a decode step on the CPU, each one compiled function over preallocated buffers.

Torch's own low-bit products run between them. Products are read and inputs written as bfloat16 bits (int16),
everything else is float32. An empty array stands for "not there" (no bias, no correction, no norm).
"""

from kernels.cpu.attention import attend
from kernels.cpu.correction import NOT_FINITE, correct
from kernels.cpu.gating import gate
from kernels.cpu.head import sharpen
from kernels.cpu.norms import finish_block, start_linear

__all__ = ["NOT_FINITE", "attend", "correct", "finish_block", "gate", "sharpen", "start_linear"]
