"""What a chained group product reads of its input is read by loads that no compiler moves before the wait.

`ld.global.nc` promises that nobody writes, and the assembler moves it across `griddepcontrol.wait`.
"""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("triton.backends.nvidia")

CODE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernels.gpu.lowbit.group_kernel import group_kernel

FLOATS = {"group_sums", "x_scale", "squares", "out", "bias", "values", "partial"}
BASE = dict(BATCH=1, USED=1, TAIL=True, ADD=True, BIAS=True, FETCH=False, FETCH_ROWS=4, FETCH_SPLITS=1,
            FETCH_AHEAD=False, WHOLE=True, WARPS=4, CHAINED=True, ASM=True, CHUNKS=8, NORMED=True)
SCALARS = {"rows", "steps", "stride", "chunks", "columns", "fetchers", "fetch_groups", "fetch_words",
           "fetch_columns"}

for bits in (3, 4):
    constants = {**BASE, "BITS": bits}
    signature, constexprs = {}, {}
    for place, name in enumerate(group_kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
            constexprs[(place,)] = constants[name]
        elif name in SCALARS:
            signature[name] = "i32"
        elif name == "eps":
            signature[name] = "fp32"
        else:
            signature[name] = "*fp32" if name in FLOATS else "*i32"
    source = ASTSource(group_kernel, signature, constexprs)
    found = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    print("KERNEL")
    print(found.asm["ptx"])
"""


@pytest.mark.slow
def test_inputs_are_read_behind_the_wait():
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    run = subprocess.run(
        [sys.executable, "-c", CODE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    texts = run.stdout.split("KERNEL")[1:]
    assert len(texts) == 2
    for text in texts:
        wait = text.index("griddepcontrol.wait")
        wide = list(re.finditer(r"ld\.global\S*\.v4\.u32", text))
        inputs = [match for match in wide if "no_allocate" not in match[0]]
        assert any(match.start() > wait for match in inputs)
        assert not [match[0] for match in inputs if ".nc" in match[0] and match.start() > wait]
        # The first weights are on their way before.
        assert any(match.start() < wait for match in wide if "no_allocate" in match[0])
