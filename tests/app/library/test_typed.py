"""What is meant by what was typed or pasted."""

import pytest

from app.library import typed
from app.library.typed import Import, Search, as_path, looks_like_path, meaning
from runtime.errors import DecdecError


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/b", "/a/b"),
        ("'/a/b c.gguf'", "/a/b c.gguf"),
        ('"/a/b"', "/a/b"),
        ("file:///a/b%20c.gguf", "/a/b c.gguf"),
        (r"/a/b\ c\(1\).gguf", "/a/b c(1).gguf"),
        (r"C:\models\m.gguf", r"C:\models\m.gguf"),
        (r"C:\Users\me\(models)\m.gguf", r"C:\Users\me\(models)\m.gguf"),
        (r"\\server\share\ (1)\m.gguf", r"\\server\share\ (1)\m.gguf"),
        ("file:///C:/m.gguf", "/C:/m.gguf"),
        ("  qwen 2  ", "qwen 2"),
        ("'", "'"),
    ],
)
def test_paths_as_terminals_paste_them(text, path):
    assert as_path(text) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///C:/Users/a%20b/m.gguf", "C:/Users/a b/m.gguf"),
        ("file:///models/m.gguf", "/models/m.gguf"),
        (r"models\(1)\m.gguf", r"models\(1)\m.gguf"),
        (r'"C:\my models\m.gguf"', r"C:\my models\m.gguf"),
    ],
)
def test_paths_as_windows_has_them(text, path, monkeypatch):
    monkeypatch.setattr(typed, "_WINDOWS", True)
    assert as_path(text) == path


@pytest.mark.parametrize("text", ["file://[", "file://\u2100", "FILE://[::1"])
def test_an_address_that_is_none_yet_is_left_as_it_is_typed(text):
    assert as_path(text) == text
    assert not looks_like_path(text)
    assert meaning(text) == Search(text)


def test_a_gguf_file_and_a_folder_are_imported(tmp_path, monkeypatch):
    file = tmp_path / "my model.gguf"
    file.write_bytes(b"GGUF")
    assert meaning(f"'{file}'") == Import(str(file), "my-model")
    folder = tmp_path / "owner" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert meaning(str(folder)) == Import(str(folder), "model")
    monkeypatch.chdir(tmp_path)
    assert meaning("owner/model") == Import(str(folder), "model"), "it lies here"
    assert meaning("owner/other") == Search("owner/other")


@pytest.mark.parametrize("text", ["/none/such.gguf", "~/none-such-folder", "gone.gguf", "./x"])
def test_a_path_that_is_none_says_so(text):
    with pytest.raises(DecdecError, match="There is no file or folder"):
        meaning(text)


def test_a_file_that_is_no_model_says_so(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DecdecError, match=r"must be a \.gguf"):
        meaning(str(tmp_path / "notes.txt"))


@pytest.mark.parametrize(
    ("text", "expected"), [("", None), ("  ", None), ("qwen2 instruct", Search("qwen2 instruct"))]
)
def test_words(text, expected):
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("/x", True), ("x.GGUF", True), ("o/m", False), ("phi 3", False)]
)
def test_looks(text, expected):
    assert looks_like_path(text) is expected
