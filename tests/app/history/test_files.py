"""Files that people name, and Markdown for people."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation import Conversation, TurnState
from app.history import files, markdown
from runtime.errors import DecdecError
from tests.app.history.conversations import facts, said

ONE = said(("What is the capital of France?", "Paris."), system_prompt="Be brief.")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("What is the capital of France?", "chat-what-is-the-capital-of-france.md"),
        ("../../etc/passwd", "chat-etc-passwd.md"),
        ("CON", "chat-con.md"),
        ("東京の天気", "chat-東京の天気.md"),
        ("हिन्दी", "chat-हिन्दी.md"),
        ("???", "chat-untitled.md"),
        ("a\x1b[31m\x00b", "chat-a-31m-b.md"),
        (".hidden -rf", "chat-hidden-rf.md"),
    ],
)
def test_a_name_comes_from_the_title(title, name):
    assert files.default_name(said(("q", "a"), title=title)) == name


@given(st.text(max_size=300))
def test_any_title_gives_a_name_that_can_be_used(title):
    name = files.default_name(said(("q", "a"), title=title))
    assert Path(name).name == name
    assert len(name.encode()) < 120


@pytest.mark.parametrize(
    ("wish", "file"),
    [
        ("", "chat-what-is-the-capital-of-france.md"),
        ("notes", "notes.md"),
        ("notes.md", "notes.md"),
        ("Notes.JSON", "Notes.JSON"),
        ("~/notes.md", "home/notes.md"),
        ("~/", "home/chat-what-is-the-capital-of-france.md"),
        ("home", "home/chat-what-is-the-capital-of-france.md"),
        ('"two words.md"', "two words.md"),
        (" 'x y.json' ", "x y.json"),
    ],
)
def test_where_a_conversation_is_written(here, wish, file):
    assert files.export(ONE, wish).resolve() == (here / file).resolve()
    assert "Paris." in (here / file).read_text(encoding="utf-8")


def test_nothing_is_overwritten(here):
    (here / "a.md").write_text("mine")
    (here / "a-2.md").symlink_to(here / "nowhere")
    assert files.export(ONE, "a.md").name == "a-3.md"
    assert (here / "a.md").read_text() == "mine"
    assert not (here / "nowhere").exists()
    assert files.export(ONE).name != files.export(ONE).name


@pytest.mark.parametrize(
    "wish", ["no/such/folder.md", "a.txt", "~nobody-here/a.md", "a\0b.md", "x" * 400 + ".md"]
)
def test_what_cannot_be_written_is_one_sentence(wish):
    with pytest.raises(DecdecError) as caught:
        files.export(ONE, wish)
    assert "\n" not in caught.value.sentence
    assert "\x00" not in caught.value.sentence


def test_a_failed_write_leaves_no_half_file(here):
    with pytest.raises(TypeError):
        files.write(here / "a.md", None)  # type: ignore[arg-type]
    assert not (here / "a.md").exists()


@pytest.mark.parametrize("links", [True, False])
def test_a_file_has_its_name_only_when_all_of_it_is_on_the_disk(here, monkeypatch, links):
    def refuse(*paths):
        raise OSError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(files.os, "link", refuse)
    whole, seen = files.os.fsync, []
    monkeypatch.setattr(files.os, "fsync", lambda file: (seen.append(set(here.glob("a*"))), whole(file)))
    (here / "a.md").write_text("mine")
    assert files.write(here / "a.md", b"all of it").read_bytes() == b"all of it"
    assert seen == [{here / "a.md"}]
    assert {path.name for path in here.iterdir() if path.is_file()} == {"a.md", "a-2.md"}
    monkeypatch.setattr(files.os, "fsync", refuse)
    with pytest.raises(DecdecError, match="cannot be written"):
        files.write(here / "b.md", b"all of it")
    assert {path.name for path in here.iterdir() if path.is_file()} == {"a.md", "a-2.md"}


def test_json_brings_everything_back():
    path = files.export(ONE, "a.json")
    assert [facts(each) for each in files.read(str(path))] == [facts(ONE)]


def test_what_cannot_be_read_is_one_sentence(here, monkeypatch):
    (here / "bad.json").write_text("{")
    (here / "huge.json").write_text("x" * 100)
    os.mkfifo(here / "pipe") if hasattr(os, "mkfifo") else (here / "pipe").mkdir()
    monkeypatch.setattr(files, "MAX_BYTES", 50)
    for wish, reason in [
        ("nothing.json", "No such file"),
        ("bad.json", "holds no conversations"),
        ("huge.json", "larger than 50 B"),
        ("home", "no file"),
        ("pipe", "no file"),
        ("a\0b", "null"),
        ("~nobody-here/a", "home"),
        ("x" * 400, "name too long"),
    ]:
        with pytest.raises(DecdecError, match=f"(?i){reason}") as caught:
            files.read(wish)
        assert "\n" not in caught.value.sentence


def test_markdown_says_who_said_what():
    conversation = Conversation("Be brief.\nBe kind.", "A title", created=0)
    turn = conversation.ask("Why\x1b[31m?", "a-model")
    turn.answer, turn.state, turn.finish_reason = (
        "<think>hm\nhm</think>So:\n\n```py\nx = 1",
        TurnState.DONE,
        "length",
    )
    conversation.branch(turn, "Other")
    conversation.choose(turn)
    lines = markdown.document(conversation).split("\n")
    assert lines[0] == "# A title"
    assert lines[2].endswith("· a-model*")
    assert lines[4:] == [
        "## System prompt", "", "> Be brief.", "> Be kind.", "",
        "## You", "", "Why␛[31m?", "",
        "## a-model", "", "> hm", "> hm", "", "So:", "", "```py", "x = 1", "```", "",
        "*variant 1 of 2 · length limit reached*", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("plain", "plain"),
        ("```\na\n```", "```\na\n```"),
        ("```py\na", "```py\na\n```"),
        ("````\n```\na", "````\n```\na\n````"),
        ("~~~\n```\n~~~", "~~~\n```\n~~~"),
        ("```\n~~~", "```\n~~~\n```"),
        ("   ```\nx", "   ```\nx\n```"),
        ("    ```\nx", "    ```\nx"),
        ("```\na\n``` b", "```\na\n``` b\n```"),
    ],
)
def test_a_cut_code_block_is_closed(text, whole):
    assert markdown.closed(text) == whole
