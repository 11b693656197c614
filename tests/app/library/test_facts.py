"""Facts and hints, row by row."""

import pytest

from app.library.facts import facts, of_details
from app.library.hints import hint
from app.library.pulls import Pull, PullState
from app.library.rows import LeftoverRow, OfferRow, PullRow, ReadyRow, Shelf, View, offers_of, sections
from runtime import store
from runtime.protocol.events import Progress
from runtime.sources import catalogue, resolve
from runtime.store.leftovers import Leftover
from tests.app.conftest import MODEL, add_model

DETAILS = {
    "family": "llama",
    "layers": 30,
    "hidden": 576,
    "parameters": 134_515_008,
    "context": 8192,
    "parts": {"INT8-X": 92_000_000, "base awq4": 57_000_000},
    "profiles": [
        {
            "base": "awq4",
            "device": "cuda:0",
            "processor": "Some GPU",
            "day": "2026-11-30",
            "detents": {"2.5": {"qkv": 0, "o": 0}, "10": {"qkv": 32, "o": 48}},
            "why_not": "since the last tuning driver changed from 1 to 2",
        }
    ],
}


def ready(tuned=False, loaded=False):
    add_model(MODEL)
    return ReadyRow(store.find(MODEL), tuned, loaded)


def test_a_prepared_model():
    known = dict(facts(ready()))
    assert known["Source"] == "a test"
    assert known["Licence"] == "Apache-2.0", "the catalogue knows it"
    assert known["INT8-X"] == "6.40 bit/w"
    assert known["Bases"] == "awq4"
    assert "1.00 kB" in known["On disk"]
    assert "not tuned" in known["Slider"]
    assert "Download" not in known
    folder = resolve(MODEL)._folder
    folder.mkdir(parents=True)
    (folder / "x.gguf").write_bytes(b"x" * 2000)
    with store.building("other") as staging:
        (staging / "w").write_bytes(b"x")
        source = resolve(MODEL).record
        store.publish("other", staging, {**source, "bits_per_weight": 5, "quality": {"bits": 4.2}})
    other = dict(facts(ReadyRow(store.find("other"), True, False)))
    assert "2.00 kB of its source are kept too" in other["Download"]
    assert other["INT8-X"] == "5.00 bit/w, made for: 4.2 bit"
    assert "lossless only" in other["Bases"]


def test_details_of_the_files():
    known = dict(of_details(DETAILS))
    assert known["Architecture"] == "llama, 30 layers of 576, 134.5 M weights"
    assert known["Context"] == "8 192 tokens at most"
    assert known["Parts"] == "INT8-X 92.0 MB · base awq4 57.0 MB"
    assert known["Tuning"].startswith("awq4 on cuda:0 (Some GPU), 2026-11-30; ")
    assert "0 at 2.5 % · 80 at 10 %; not used: since the last tuning" in known["Tuning"]
    assert "not tuned" in dict(of_details({**DETAILS, "profiles": []}))["Tuning"]


def test_text_from_elsewhere_is_harmless():
    row = OfferRow("hub", "a/\x1b[31mb", "b", "a/\x1b[31mb", licence="mit\nx")
    assert dict(facts(row))["Licence"] == "mit x"
    assert all("\x1b" not in text for _, text in facts(row))
    assert "\x1b" not in hint(row, "")


def test_offers():
    listed = {
        row.name: dict(facts(row))
        for s in sections(Shelf(offers=offers_of(catalogue.load())), (), View())
        for row in s.rows
    }
    assert listed[MODEL]["Source"] == "the Python package index"
    assert listed["Qwen3-0.6B"]["Source"] == "hub Qwen/Qwen3-0.6B"
    assert any("HF_TOKEN" in known.get("Gated", "") for known in listed.values())


def pull(state, problem="", done=0):
    made = Pull("m", "o/m", state, problem=problem)
    if done:
        made.progress.push(Progress("prepare", "download", done, 100, "bytes"))
    return PullRow(made)


def test_of_a_download_that_waits_it_is_told_for_what():
    row, note = pull(PullState.RUNNING), "next attempt in 5 s: the hub cannot be reached"
    row.pull.progress.push(Progress("prepare", "download", 1, 2, "bytes", note=note))
    assert hint(row, "") == f"Enter pauses m · {note}"
    row.pull.progress.push(Progress("prepare", "encode", 1, 2, "weights", note="model.norm"))
    assert hint(row, "") == "Enter pauses m."


def test_of_what_rests_it_is_told_how_much_is_there():
    resting = pull(PullState.PAUSED, done=43)
    assert dict(facts(resting))["On disk"] == "what was fetched and made is kept"
    resting.pull.here = 43_100_000
    assert dict(facts(resting))["On disk"] == "43.1 MB: what was fetched and made is kept"
    assert "On disk" not in dict(facts(pull(PullState.RUNNING, done=43)))


@pytest.mark.parametrize(
    ("row", "words", "expected"),
    [
        (None, "/a/b.gguf", "Enter imports /a/b.gguf."),
        (None, "zzz", "Nothing here is called “zzz”. Enter searches the hub."),
        (pull(PullState.RUNNING), "", "Enter pauses m."),
        (pull(PullState.WAITING), "", "Enter pauses m."),
        (pull(PullState.PAUSED), "", "Enter lets m go on."),
        (pull(PullState.FAILED, "The disk is full."), "", "The disk is full. Enter tries again."),
        (
            LeftoverRow(Leftover("x", "damaged", 1, {}), "o/x"),
            "",
            "x is damaged. Enter makes it whole, Del deletes it.",
        ),
        (
            LeftoverRow(Leftover("x", "half-made", 1, {}), ""),
            "",
            "x is half-made, and it is not known from what. Del deletes it.",
        ),
        (OfferRow("hub", "o/x", "o--x", "o/x"), "", "Enter fetches o/x."),
    ],
)
def test_hints(row, words, expected):
    assert hint(row, words) == expected


def test_hints_of_what_is_here():
    assert hint(ready(), "") == f"Enter chats with {MODEL}."
    assert hint(ready(loaded=True), "") == f"{MODEL} is in use, so it cannot be deleted."


def test_pulls_and_leftovers_say_what_is_kept():
    known = dict(facts(pull(PullState.PAUSED, done=43)))
    assert known["Download"] == "43 B of 100 B"
    assert "kept" in known["On disk"]
    left = LeftoverRow(Leftover("x", "half-made", 2000, {"source": "hub o/x"}), "o/x")
    assert dict(facts(left)) == {
        "State": "half-made",
        "Source": "hub o/x",
        "On disk": "2.00 kB",
        "Enter": "what is there is kept and taken up",
    }
