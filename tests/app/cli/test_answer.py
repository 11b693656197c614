"""Which commands one answer sends."""

import pytest

from app.cli.answer import Answer
from app.loading import Loading
from app.models import Target
from app.slider import DEFAULT_SLOWDOWN_PCT
from runtime.errors import DecdecError
from runtime.protocol import Generate, KChunk, Load, Loaded, Prepare, SetSlowdown, SlowdownPoint, Tune

PATH = (SlowdownPoint(0.0, KChunk()), SlowdownPoint(3.0, KChunk(8, 8, 8, 8)))


def commands(path=(), prepared=True, **settings):
    """All commands, with a Loaded event of that path after the first Load and a tuned one after a Tune."""
    bases = frozenset({"awq4", "rtn3"})
    answer = Answer(Target("m", "m", prepared, bases if prepared else frozenset()), "q", **settings)
    sent = []
    for command in answer._commands():
        sent.append(command)
        if isinstance(command, Tune):
            path = PATH
        if isinstance(command, Load):
            answer._on_event(
                Loaded("m", command.base, "CPU", 64, 1, path, note="Some blocks stay uncorrected.")
            )
    return sent


def test_an_untouched_slider_stands_at_the_default_where_the_model_is_tuned():
    assert SetSlowdown(DEFAULT_SLOWDOWN_PCT) in commands(PATH)
    assert not any(isinstance(c, SetSlowdown | Tune) for c in commands())


def test_every_load_is_as_asked_for_and_its_note_is_told_once(capsys):
    sent = commands(tune=True, loading=Loading(4096, False, 8))
    loads = [c for c in sent if isinstance(c, Load)]
    assert loads == [Load("m", context=4096, prompt_correction=False, kv_bits=8)] * 2
    assert capsys.readouterr().err.count("Some blocks stay uncorrected.\n") == 1


def test_zero_is_zero():
    assert not any(isinstance(c, SetSlowdown) for c in commands(PATH, slowdown_pct=0.0))


def test_what_is_missing_is_made_first():
    kinds = [type(c) for c in commands(prepared=False, tune=True, slowdown_pct=10.0)]
    assert kinds == [Prepare, Load, Tune, Load, SetSlowdown, Generate]


@pytest.mark.parametrize("base", ["rtn3", "int8"])
def test_the_base_is_loaded_and_tuned(base):
    sent = commands(base=base, tune=True)
    assert [c.base for c in sent if isinstance(c, Load | Tune)] == (
        ["rtn3"] * 3 if base == "rtn3" else ["int8"]
    )


def test_a_base_that_the_model_lacks_is_made_first():
    sent = commands(base="awq3")
    assert sent[0] == Prepare("m", "m", bases=("awq3",))
    assert [c.base for c in sent if isinstance(c, Load)] == ["awq3"]


def test_a_position_without_a_profile_is_refused():
    with pytest.raises(DecdecError, match="tune"):
        commands(slowdown_pct=5.0)


def test_the_usual_position_holds_where_the_model_is_tuned_and_is_no_error_elsewhere():
    assert SetSlowdown(2.5) in commands(PATH, usual_pct=2.5)
    assert not any(isinstance(c, SetSlowdown) for c in commands(usual_pct=2.5))
