"""What the list of models shows."""

import pytest

from app import offer_lines
from app.library.facts import facts
from app.library.pulls import Pull, PullState
from app.library.rows import LeftoverRow, OfferRow, PullRow, ReadyRow, Shelf, View, sections
from app.ranking import Known, ranked
from app.surroundings import Surroundings
from runtime import store
from runtime.sources import catalogue
from runtime.sources.fit import Room
from runtime.sources.hub_search import Found, FoundModel
from runtime.tuner.files import profile_path
from tests.app.conftest import MODEL, add_model

ENTRIES = catalogue.load()


def shown(pulls=(), **view):
    return {s.title: list(s.rows) for s in sections(Shelf.read(ENTRIES), pulls, View(**view))}


def test_an_empty_machine_shows_the_catalogue():
    listed = shown()
    assert list(listed) == ["Catalogue"]
    first = listed["Catalogue"][0]
    assert (first.label, first.download, first.gated, first.ready) == (
        ENTRIES[0].label,
        92_871_040,
        False,
        False,
    )
    assert any(row.gated for row in listed["Catalogue"])
    assert len({row.key for row in listed["Catalogue"]}) == len(ENTRIES)


def test_prepared_models_with_what_is_known_of_them():
    add_model(MODEL)
    add_model("other")
    path = profile_path(MODEL, "awq4")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    listed = shown(loaded="other")
    rows = listed["On this machine"]
    assert [(row.name, row.tuned, row.loaded) for row in rows] == [
        ("other", False, True),
        (MODEL, True, False),
    ]
    assert all(isinstance(row, ReadyRow) for row in rows)
    assert listed["Catalogue"][0].ready


def test_what_is_on_the_way_is_nowhere_else():
    entry = ENTRIES[1]
    with store.building(entry.name, {"source": {"kind": "hub", "repo": "o/m"}}) as staging:
        (staging / "part").write_bytes(b"x")
    assert [type(row) for row in shown()["Not whole"]] == [LeftoverRow]
    listed = shown([Pull(entry.name, entry.name, PullState.PAUSED)])
    assert "Not whole" not in listed
    assert [row.name for row in listed["On the way"]] == [entry.name]
    assert entry.name not in [row.name for row in listed["Catalogue"]]


def test_leftovers_know_what_to_fetch_again():
    with store.building("owner--m", {"source": {"kind": "hub", "repo": "owner/m"}}) as staging:
        (staging / "part").write_bytes(b"x" * 9)
    with store.building("odd", {"source": {"kind": "strange"}}) as staging:
        (staging / "part").write_bytes(b"x")
    rows = shown()["Not whole"]
    assert [(row.name, row.source) for row in rows] == [("odd", ""), ("owner--m", "owner/m")]


def test_words_filter_everything_here():
    add_model("Alpha-Instruct")
    listed = shown([Pull("beta", "o/beta")], words="INSTRUCT alpha")
    assert [row.name for row in listed["On this machine"]] == ["Alpha-Instruct"]
    assert "On the way" not in listed
    assert "Catalogue" not in listed
    assert [row.name for row in shown(words="HuggingFaceTB").get("Catalogue", [])] == []
    assert shown(words="qwen3 0.6")["Catalogue"][0].name == "Qwen3-0.6B"


def test_what_the_hub_found():
    add_model("owner--here")
    models = (
        FoundModel("owner/here", 5, 10, licence="mit"),
        FoundModel("Qwen/Qwen3-0.6B", 900, 1200, True),
        FoundModel("owner/coming"),
    )
    found = Found("here", "http://hub", models, 4)
    listed = shown([Pull("owner--coming", "owner/coming")], words=" here ", found=found)
    title = "On the hub, 2 for “here”; 4 more cannot be used here"
    assert [(r.name, r.source, r.download, r.gated, r.ready) for r in listed[title]] == [
        ("owner--here", "owner/here", 10, False, True),
        ("Qwen3-0.6B", "Qwen/Qwen3-0.6B", 1200, True, False),
    ]
    assert not any("hub" in title for title in shown(words="other", found=found)), "an answer to other words"


def test_what_the_hub_found_under_a_name_that_no_folder_may_have_is_left_out():
    models = (FoundModel("con.x/y"), FoundModel("owner/y"), FoundModel("AUX/y"), FoundModel("nul.a/y"))
    listed = shown(words="y", found=Found("y", "http://hub", models, 2))
    title = "On the hub, 2 for “y”; 4 more cannot be used here"
    assert [row.name for row in listed[title]] == ["owner--y", "AUX--y"], "a folder may be called AUX--y"
    listed = shown(words="y", found=Found("y", "http://hub", models[:1]))
    assert not any("hub" in title for title in listed)


def test_a_whole_name_is_offered_without_any_hub():
    (row,) = shown(words="Owner/Model-7B")["On the hub"]
    assert row == OfferRow("typed", "Owner/Model-7B", "Owner--Model-7B", "Owner/Model-7B")
    found = Found("Owner/Model-7B", "http://hub", (FoundModel("owner/model-7b", 1),))
    rows = [
        row
        for title, rows in shown(words="Owner/Model-7B", found=found).items()
        if "hub" in title
        for row in rows
    ]
    assert [row.origin for row in rows] == ["hub"], "the hub knows it by itself"


def test_a_pull_shows_itself():
    pull = Pull("m", "o/m")
    (row,) = shown([pull])["On the way"]
    assert isinstance(row, PullRow)
    assert row.pull is pull


ROOMS = [Room(None, 16 << 30), Room(8 << 30, 16 << 30)]


@pytest.mark.parametrize("here", ROOMS, ids=["cpu", "gpu"])
def test_memory_is_the_set_ups_figure_in_its_words(here):
    known = Surroundings(here, None, gpu=here.device is not None)
    offers = {offer.name: offer for offer in ranked(ENTRIES, MODEL, Known(), known)}
    rows = sections(Shelf.read(ENTRIES, here), (), View())[0].rows
    assert len(rows) == len(ENTRIES)
    for row in rows:
        assert row.fit.memory == offers[row.name].fit.memory
        told = dict(facts(row))["Memory"]
        assert any(told in sentence for sentence in offer_lines.facts(offers[row.name]))
