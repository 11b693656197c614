"""Choosing the next token on a GPU: `state` holds the settings, `choose` runs two kernels over the logits.

`tile_kernel` condenses tiles of the vocabulary, `draw_kernel` draws from what they found, `boundary` finds
which tokens the filters keep, `primitives` has order, weights and noise.
"""
