"""What a failed allocation tells, from the real exceptions of torch, numpy and Python."""

import numpy as np
import pytest
import torch

from runtime.shortage import is_out_of_memory, shortage

EXBI = 1 << 60


@pytest.mark.parametrize(
    "allocate", [lambda: torch.empty(EXBI, dtype=torch.uint8), lambda: np.empty(EXBI, np.uint8)]
)
def test_host_memory_in_numbers(allocate):
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        allocate()
    assert is_out_of_memory(caught.value)
    assert shortage(caught.value).startswith("1152921504.61 GB more were needed and ")
    assert shortage(caught.value).endswith(" of host memory are free")


def test_a_gpu_s_memory_in_numbers():
    text = (
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 5.64 GiB of which {}"
    )
    error = torch.OutOfMemoryError(text.format("8.94 MiB is free. Process 1 has 5 GiB memory in use."))
    assert is_out_of_memory(error)
    assert shortage(error) == "21.0 MB more were needed and 9.4 MB of the GPU's memory are free"


def test_without_numbers_the_words_are_kept():
    error = RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported")
    assert is_out_of_memory(error)
    assert shortage(error) == "RuntimeError: CUDA error: out of memory"
    assert not is_out_of_memory(RuntimeError("the shapes do not fit"))
