"""What the decode benchmark's tables show, for below them."""

from __future__ import annotations

NOTES = {
    "ceiling": "A product of bf16 28672 x 4096 with one vector by cuBLAS, over copies that no cache holds;"
    " and what kernels read from page-locked host memory.",
    "transformers": "A whole token by transformers in bf16, random weights, head included; context of 16.",
    "steps": "A whole token at a context of 512, cache for 4096, random weights. ms: median of a step, on the"
    " device; driven: tokens/s when the host asks for each token. slowdown: of the whole step, base and"
    " corrected replayed in turn. x bf16: to this project's in the same run; x eager: to transformers."
    " GB: allocated for weights, cache and buffers; peak: prefill included. GB read: weights, head and"
    " cache that a step reads; of ceiling: that in the step's time, over the ceiling. Blocks are copies"
    " of one another in memory of their own; residual rows, in host memory, are shared by all blocks."
    " Heads: bf16; INT8 with a scale per row for int8x; the same in 6 bits for low-bit weights.",
    "contexts": "As under steps, without correction.",
    "memory": "GB by purpose as the engine counts them; all: allocated, above what was before the model."
    " host: embedding, and residuals of all blocks as a real model has them.",
    "first token": "Milliseconds from an empty cache to the logits, on the host, median of three.",
    "slider moves": "1000 tokens of one answer, the slider at 10 % and moved before every token, by the"
    " host's clock.",
    "prepared": "Real weights; otherwise as under steps.",
    "peers": "The linears of a token in one graph, norms and gates by torch's operations for the packages;"
    " ratio: to bf16 in the same process.",
    "kernels": "Kernels that a whole token starts, sampling included; corrected: in all four linears.",
    "compiled": "transformers, static cache, torch.compile(mode='reduce-overhead'), launches included.",
}
