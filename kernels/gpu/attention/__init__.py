"""Attention of a decode step on a GPU: the static KV cache, and one kernel from the product to the output.

`cache` holds keys and values, `scratch` what the programs of a step tell each other, `decode` computes a
token's attention; the kernel is in `decode_kernel`, with its parts in `heads`, `rows` and `combine`.
"""
