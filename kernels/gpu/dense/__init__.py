"""Products with weights that are kept as they are, in bf16: what the compressed forms are compared with."""
