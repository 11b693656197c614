"""What was begun and not finished is known to the next start, once."""

import pytest

from app import unfinished
from app.library import records
from app.library.pulls import Pulls, PullState
from runtime import store
from runtime.sources import catalogue

MODEL = catalogue.default().name


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DECDEC_HOME", str(tmp_path))


def half_made(name, **record):
    with store.building(name, {"source": record}) as staging:
        (staging / "config.json").write_text("{}")


def test_nothing_was_begun():
    assert unfinished.begun() == ()


def test_what_is_noted_is_known_until_it_is_prepared():
    unfinished.note("owner/model")
    assert unfinished.begun() == (("owner--model", "owner/model"),)
    unfinished.settle(Pulls(), "owner/model")
    assert unfinished.begun() == ()


def test_half_made_models_are_known_where_their_source_is():
    half_made("owner--m", kind="hub", repo="owner/m")
    half_made("nowhere", kind="unknown")
    assert unfinished.begun() == (("owner--m", "owner/m"),)


def test_a_model_that_is_noted_and_half_made_is_offered_once():
    half_made(MODEL)
    unfinished.note(MODEL)
    assert unfinished.begun() == ((MODEL, MODEL),)


def test_a_source_that_is_none_cannot_be_noted():
    unfinished.note("no such model")
    assert unfinished.begun() == ()


def test_what_is_left_rests_among_the_models_on_their_way():
    pulls = Pulls()
    unfinished.rest(pulls, "owner/model")
    pull = pulls.find("owner--model")
    assert (pull.state, pull.source) == (PullState.PAUSED, "owner/model")
    assert pulls.start() is None, "it does not begin by itself"


def test_a_pull_that_is_there_already_goes_its_own_way():
    pulls = Pulls()
    pulls.add("owner--model", "owner/model")
    unfinished.rest(pulls, "owner/model")
    assert pulls.find("owner--model").state is PullState.WAITING


def test_what_is_prepared_is_no_longer_on_its_way():
    unfinished.note("owner/model")
    pulls = Pulls(records.unfinished())
    unfinished.settle(pulls, "owner/model")
    assert list(pulls) == []


def test_what_was_refused_before_it_had_begun_is_forgotten():
    pulls = Pulls()
    unfinished.note("owner/refused")
    unfinished.refused(pulls, "owner/refused")
    assert unfinished.begun() == ()
    unfinished.note("owner/m")
    half_made("owner--m", kind="hub", repo="owner/m")
    unfinished.refused(pulls, "owner/m")
    assert unfinished.begun() == (("owner--m", "owner/m"),), "there is something to go on with"


def test_a_name_that_was_given_is_kept_to_the_end():
    pulls = Pulls()
    unfinished.note("/models/tiny", "mine")
    assert unfinished.begun() == (("mine", "/models/tiny"),)
    unfinished.rest(pulls, "/models/tiny", "mine")
    assert [(pull.name, pull.source) for pull in pulls] == [("mine", "/models/tiny")]
    unfinished.settle(pulls, "/models/tiny", "mine")
    assert unfinished.begun() == ()
    assert not list(pulls)
