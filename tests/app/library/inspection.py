"""A result of the job "int8x_inspect", small."""


def measured(kind, weights, bits, **more):
    return {
        "kind": kind,
        "weights": weights,
        "bits_per_weight": bits,
        "entropy_bits_per_weight": bits - 0.3,
        "huffman_bits_per_weight": bits - 0.25,
        "share": {"plane": 0.9, "short": 0.09, "byte": 0.01},
        "mean_widths": {"plane": 4.5},
        **more,
    }


INSPECTION = {
    "model": "m",
    "format_version": 2,
    "quality": "balanced",
    "tensors": [
        measured("embed_tokens", 300, 7.1, name="model.embed_tokens.weight", codec="adaptive"),
        measured("q_proj", 700, 4.8, name="model.layers.0.self_attn.q_proj.weight", codec="adaptive"),
    ],
    "kinds": [
        measured("embed_tokens", 300, 7.1, tensors=1, codecs={"adaptive": 1}),
        measured("q_proj", 700, 4.8, tensors=1, codecs={"adaptive": 1}),
    ],
    "decoder_linears": measured("decoder_linears", 700, 4.8, tensors=1),
    "total": measured("total", 1000, 5.5, tensors=2),
}
