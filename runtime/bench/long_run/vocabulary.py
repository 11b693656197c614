"""A tokenizer for a vocabulary of any size."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

_TURN = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def write_tokenizer(vocabulary: int, folder: Path) -> None:
    """A byte-level tokenizer that knows every id, and a template whose `<|im_end|>` alone ends an answer."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*letters, *(f"Ġx{number:x}" for number in range(len(letters), vocabulary - 2))]
    built = Tokenizer(models.BPE({name: at for at, name in enumerate(names[: vocabulary - 2])}, []))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    built.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(_TURN, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"vocab_size": vocabulary}))
