"""Chat templates of real models, rendered here and by transformers; for use by hand.

`python -m tests.runtime.text.compare_templates FOLDER` takes every *.jinja below a folder. None is kept here:
they belong to their authors.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

from runtime.errors import DecdecError
from runtime.protocol import Message
from runtime.text.template import ChatTemplate

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
CONVERSATIONS = (
    ("u:What is 2 + 2?",),
    ("s:Be brief.", "u:Hi"),
    ("s:", "u:  spaced  ", "a:Answer\n\n", "u:end?"),
    ("u:東京 👨‍👩‍👧 <|im_end|> {{ x }} {% y %}", "a:`code`\n```py\nx\n```", "u:again"),
    ("u:q", "a:<think>\nhm\n</think>\n\nyes", "u:r", "a:<think>z</think>ok", "u:s"),
    ("s:s", *(f"{who}:{at}" for at in range(30) for who in "ua"), "u:last"),
)
ROLES = {"u": "user", "a": "assistant", "s": "system"}


def theirs(source: str, messages: list[Message]) -> str | None:
    """What transformers renders; None where the template or the conversation is refused."""
    dicts = [{"role": each.role, "content": each.content} for each in messages]
    try:
        return str(
            render_jinja_template([dicts], chat_template=source, add_generation_prompt=True, **TOKENS)[0][0]
        )
    except Exception:
        return None


def ours(source: str, messages: list[Message]) -> str | None:
    """The same by the product, without its help for templates that know no system message."""
    try:
        return ChatTemplate(source, TOKENS)._render(messages)
    except DecdecError:
        return None


def main(folder: Path) -> int:
    """Print what differs and how much was the same; 1 if anything differs."""
    counted: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for lines in CONVERSATIONS:
            messages = [Message(ROLES[line[0]], line[2:]) for line in lines]
            wanted, got = theirs(source, messages), ours(source, messages)
            counted["refused by both" if wanted is got is None else "same" if wanted == got else "other"] += 1
            if wanted != got:
                print(f"{path.name}: {lines[0]!r}…\n  wanted {wanted!r}\n  got    {got!r}")
    print(dict(counted))
    return 1 if counted["other"] or not counted else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
