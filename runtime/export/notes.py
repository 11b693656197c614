"""Sentences about what an export changed, for people."""

from __future__ import annotations

from runtime.export.folding import Folds
from runtime.export.pieces import Contents
from runtime.model.weights import EMBEDDING, HEAD


def notes_of(contents: Contents, folds: Folds) -> list[str]:
    """One sentence for the integers, and one for each thing that went out in another form."""
    tables = {EMBEDDING: "the embedding", HEAD: "the head"}
    kept = [tables[name] for name in contents.bfloat16 if name in tables]
    others = len(contents.bfloat16) - len(kept) - len(folds.left)
    notes = [f"{len(contents.int8)} matrices are INT8, with exactly the integers of the model."]
    if kept:
        notes.append(f"Rounded to bfloat16: {' and '.join(kept)}, which not every loader reads as INT8.")
    if folds.left:
        notes.append(
            f"Rounded to bfloat16: {_matrices(len(folds.left))} whose input factors this layout cannot hold."
        )
    if others:
        notes.append(f"Rounded to bfloat16: {_matrices(others)} outside the decoder's linears.")
    if folds.norms or folds.rows:
        moved = f"{len(folds.norms)} norms and the scales of {_matrices(len(folds.rows))}"
        notes.append(f"Input factors moved into {moved}; a decoder computes the same with them.")
    return notes


def _matrices(count: int) -> str:
    return "one matrix" if count == 1 else f"{count} matrices"
