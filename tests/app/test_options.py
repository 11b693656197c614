"""Values: typed, shown, stepped; and the table of everything that can be set."""

import msgspec
import pytest

from app import options
from app.kinds import Number, Pick, Words, pick
from app.options import OPTIONS, Applies, Section, by_name
from app.settings import FIELDS, Settings
from runtime.protocol.commands import Sampling

SHARE = Number(0.0, 1.0, 0.05, 0.9, unset="the model's own")
COUNT = Number(1, 100000, 128, 512, True, "tokens", "no limit")
FLOOR = Number(0.5, 1000, 1.0, 10.0, unit="tokens/s", unset="off", nothing=0.0)

TYPED = [
    (SHARE, "0.25", 0.25),
    (SHARE, " 0,25 ", 0.25),
    (SHARE, "1", 1.0),
    (SHARE, "", None),
    (SHARE, "the model's own", None),
    (COUNT, "4096", 4096),
    (COUNT, "4,096 tokens", 4096),
    (COUNT, "4 096", 4096),
    (COUNT, "", None),
    (FLOOR, "12.5 tokens/s", 12.5),
    (FLOOR, "", 0.0),
    (FLOOR, "off", 0.0),
    (Words("nothing"), "  x ", "x"),
    (Words("nothing"), "nothing", ""),
]


@pytest.mark.parametrize(("kind", "text", "value"), TYPED)
def test_what_is_typed(kind, text, value):
    found = kind.parse(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("kind", [SHARE, COUNT, FLOOR])
@pytest.mark.parametrize("value", [None, 1, 0.5, 512])
def test_what_is_shown_to_be_typed_comes_back(kind, value):
    if (
        (value is None and kind is FLOOR)
        or (value == 0.5 and kind is COUNT)
        or (value == 512 and kind is SHARE)
    ):
        return
    assert kind.parse(kind.typed(value)) == value
    assert kind.parse(kind.shown(value)) == value


REFUSED = [(SHARE, "1.1", "between 0 and 1"), (SHARE, "hot", "A number"), (COUNT, "1.5", "A whole number"),
           (COUNT, "0", "between 1"), (SHARE, "nan", "between"), (FLOOR, "0.1", "between 0.5")]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "why"), REFUSED)
def test_what_is_refused(kind, text, why):
    with pytest.raises(ValueError, match=why):
        kind.parse(text)


def test_steps():
    assert SHARE.stepped(None, 1) == 0.9
    assert SHARE.stepped(0.9, 1) == 0.95
    assert SHARE.stepped(1.0, 1) == 1.0
    assert SHARE.stepped(0.05, -1) == 0.0
    assert SHARE.stepped(0.0, -1) is None
    assert COUNT.stepped(512, -1) == 384
    assert FLOOR.stepped(1.0, -1) == 0.0
    colours = pick(["red", "green"])
    assert [colours.stepped(name, 1) for name in ("red", "green", "other")] == ["green", "red", "red"]
    assert colours.stepped("other", -1) == "green"
    assert Pick(((16, "sixteen"),)).shown(16) == "sixteen"
    assert Pick(((16, "sixteen"),)).shown(4) == "4"


def test_every_field_is_an_option_with_help_and_everything_on_a_page_can_be_set():
    names = {option.name.split(".")[0] for option in OPTIONS}
    assert names == {field.name for field in FIELDS}
    assert {o.key for o in OPTIONS if o.table} == {f.name for f in msgspec.structs.fields(Sampling)}
    for option in OPTIONS:
        assert option.help.endswith(".")
        assert option.title
        assert (option.kind is None) is (option.section is Section.NONE)


def test_values_are_read_and_changed_by_name():
    temperature, context = by_name("sampling.temperature"), by_name("context")
    settings = Settings(sampling=Sampling(0.5, top_k=3), context=99)
    assert (temperature.value(settings), context.value(settings)) == (0.5, 99)
    assert temperature.change(settings, 0.7) == {"sampling": Sampling(0.7, top_k=3)}
    assert context.change(settings, None) == {"context": None}
    assert (temperature.usual, context.usual) == (None, None)
    for option, value in ((temperature, -1), (context, 1), (by_name("hub_endpoint"), "ftp://x")):
        with pytest.raises(ValueError, match=r"must|at least"):
            option.change(settings, value)


def test_pages_have_the_choices_of_the_machine():
    engine = {option.name: option for option in options.of(Section.ENGINE, gpus=2)}
    assert [value for value, _ in engine["device"].kind.choices] == ["", "cpu", "cuda:0", "cuda:1"]
    theme = options.of(Section.LOOK, ["a", "b"])[0]
    assert [value for value, _ in theme.kind.choices] == ["a", "b"]
    assert engine["kv_bits"].applies is Applies.LOAD
    for section in Section:
        for option in options.of(section, ["decdec-dark"], 1):
            if isinstance(option.kind, Number | Pick):
                option.change(Settings(), option.kind.stepped(option.usual, 1))
