"""What counts as a model's answer in BIG-Bench Hard, and whether it is right.

The examples end with "So the answer is X.": the answer is what follows the last "answer is", as in the
authors' evaluation; without these words the whole text stands for it.
"""

from __future__ import annotations

import re

MARK = "answer is"
# A model goes on with a question of its own once it is done.
STOPS = ("\nQ:",)
_OPTION = re.compile(r"\(([A-Z])\)")


def extract(text: str) -> tuple[str, bool]:
    """The answer in a model's text, and whether it was announced by the words the examples use."""
    if MARK not in text:
        return text.strip(), False
    first = text.rpartition(MARK)[2].strip().split("\n", 1)[0].strip()
    return first.removesuffix(".").strip(), True


def is_right(answer: str, target: str) -> bool:
    """Exact match; where the target is an option, "(B)", the first option named in the answer counts."""
    target = target.strip()
    if wanted := _OPTION.fullmatch(target):
        found = _OPTION.search(answer)
        return (found[1] if found else answer) == wanted[1]
    return answer == target
