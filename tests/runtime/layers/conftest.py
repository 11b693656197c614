"""Without a GPU triton's kernels run in its interpreter; it must be asked for before triton is imported."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
