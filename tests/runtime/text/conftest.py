from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.small_tokenizers import sentencepiece, write_byte_level


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("byte-level")
    write_byte_level(path)
    return path


@pytest.fixture(scope="session")
def sentencepiece_folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sentencepiece")
    sentencepiece().save(str(path / "tokenizer.json"))
    return path
