"""Pure functions on tensors: Triton kernels, their CPU twins and plain references."""
