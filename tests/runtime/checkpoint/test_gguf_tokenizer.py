"""The tokenizer of a GGUF: same ids as transformers' own GGUF route, template and generation settings."""

import json

import pytest
from transformers import AutoTokenizer

from runtime.checkpoint import open_checkpoint
from runtime.errors import DecdecError
from tests.runtime.checkpoint.tiny_gguf import TEMPLATE, TOKENS, tiny_model, write_model

TEXTS = [
    "hello world",
    "  two  spaces",
    "naïve 你好 🙂",
    "<|im_start|>user\nhi<|im_end|>\n",
    "a\n\n\tb",
    "12 345",
    "",
]
MODEL = tiny_model("llama")
PREFIX = "tokenizer.ggml."


def written(tmp_path, extra=None):
    path = write_model(tmp_path / "m.gguf", MODEL, extra)
    open_checkpoint(path).write_tokenizer(tmp_path / "out" / "deep")
    return tmp_path / "out" / "deep"


def test_ids_equal_transformers(tmp_path):
    folder = written(tmp_path)
    ours = AutoTokenizer.from_pretrained(folder)
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file="m.gguf")
    for text in TEXTS:
        ids = ours(text)["input_ids"]
        assert ids == theirs(text)["input_ids"]
        assert ours.decode(ids) == text
    assert ours("hello world")["input_ids"] == [TOKENS.index("hello"), TOKENS.index("Ġworld")]
    assert (ours.bos_token_id, ours.eos_token_id, ours.pad_token_id) == (1, 2, 0)


def test_template_is_written_and_used(tmp_path):
    folder = written(tmp_path)
    assert (folder / "chat_template.jinja").read_text() == TEMPLATE
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = tokenizer.apply_chat_template([{"role": "user", "content": "hello"}], tokenize=False)
    assert text == "<|im_start|>user\nhello<|im_end|>\n"


def test_bos_is_added_when_the_file_says_so(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(written(tmp_path, {PREFIX + "add_bos_token": True}))
    assert tokenizer("hello")["input_ids"] == [1, TOKENS.index("hello")]


def generation(folder):
    return json.loads((folder / "generation_config.json").read_text())


def test_generation_settings(tmp_path):
    assert generation(written(tmp_path)) == {"bos_token_id": 1, "pad_token_id": 0, "eos_token_id": 2}


def test_every_end_of_a_turn_stops(tmp_path):
    extra = {PREFIX + "eos_token_id": 0, PREFIX + "eot_token_id": 2, "general.sampling.temp": 0.5}
    settings = generation(written(tmp_path, extra))
    assert settings["eos_token_id"] == [0, 2]
    assert settings["temperature"] == 0.5
    assert settings["do_sample"] is True


def test_unlisted_end_of_a_turn_is_found_by_name(tmp_path):
    assert generation(written(tmp_path, {PREFIX + "eos_token_id": 0}))["eos_token_id"] == [0, 2]


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ({PREFIX + "eos_token_id": 268}, "eos_token_id is 268"),
        ({PREFIX + "bos_token_id": "x"}, "bos_token_id is 'x'"),
        ({PREFIX + "token_type": [1, 3]}, "token_type of another length"),
        ({PREFIX + "tokens": [1, 3]}, "tokens is"),
        ({PREFIX + "tokens": ["a"] * 268}, "cannot be converted"),
        ({PREFIX + "merges": ["zz qq"]}, "cannot be converted"),
        ({PREFIX + "merges": ["h"]}, "cannot be converted"),
        ({PREFIX + "model": "strange"}, "cannot be converted"),
        ({PREFIX + "add_bos_token": "yes"}, "add_bos_token is 'yes'"),
        ({"tokenizer.chat_template": 3}, "chat_template is 3"),
        ({"tokenizer.chat_template": "x" * (1 << 21)}, "2097152 bytes"),
        ({"general.sampling.temp": float("inf")}, "temp is inf"),
    ],
)
def test_odd_tokenizers_are_one_sentence(extra, sentence, tmp_path):
    with pytest.raises(DecdecError, match=sentence):
        written(tmp_path, extra)
