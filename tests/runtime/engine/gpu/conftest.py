"""Without a GPU these kernels run in triton's interpreter; it must be asked for before triton is imported."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
