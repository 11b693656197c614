"""Instructions a weight costs: loops with tensor core operations counted in a kernel's machine code."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# One mma.m16n8k32 takes 4 registers of 4 weights from every lane.
WEIGHTS_A_LANE = 16
_LABEL = re.compile(r"^(\.L_x?_?\w+):")
_BRANCH = re.compile(r"\bBRA(?:\.\w+)*\s.*`\((\.L_x?_?\w+)\)")
_INSTRUCTION = re.compile(r"^\s*(?:/\*[0-9a-f]+\*/)?\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]+)")


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its instructions, and how many of them are integer tensor core operations."""

    instructions: int
    tensor_core: int

    @property
    def per_weight(self) -> float:
        """Instructions a warp issues per weight of a lane, every branch inside the loop counted as taken."""
        return self.instructions / (WEIGHTS_A_LANE * self.tensor_core)


def loops(listing: str) -> list[Loop]:
    """Innermost loops with tensor core operations, from the listing of nvdisasm."""
    labels: dict[str, int] = {}
    operations: list[str] = []
    spans: list[tuple[int, int]] = []
    for line in listing.splitlines():
        if label := _LABEL.match(line.strip()):
            labels[label.group(1)] = len(operations)
        elif found := _INSTRUCTION.match(line):
            operations.append(found.group(1))
            branch = _BRANCH.search(line)
            if branch and branch.group(1) in labels:
                spans.append((labels[branch.group(1)], len(operations)))
    inner = [s for s in spans if not any(s != o and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    counted = (operations[first:end] for first, end in inner)
    found_loops = [Loop(len(part), sum(op.startswith("IMMA") for op in part)) for part in counted]
    return [loop for loop in found_loops if loop.tensor_core]


def compiled_cubins(kernel: Any) -> list[bytes]:
    """Machine code of every variant of a triton kernel that this process has compiled."""
    caches = [entry[0] for entry in getattr(kernel, "device_caches", {}).values()]
    return [
        compiled.asm["cubin"] for cache in caches for compiled in cache.values() if "cubin" in compiled.asm
    ]


def disassemble(cubin: bytes) -> str:
    """The listing of nvdisasm: triton's, else the one on the path. FileNotFoundError where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [_nvdisasm(), "-c", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _nvdisasm() -> str:
    import triton

    shipped = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    found = str(shipped) if shipped.exists() else shutil.which("nvdisasm")
    if not found:
        raise FileNotFoundError("there is no nvdisasm")
    return found
