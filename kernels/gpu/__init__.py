"""Triton kernels that compute with compressed weights on a GPU; importing this needs neither of the two."""
