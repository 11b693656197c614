"""What a model's line and its sentences say, by how much room there is."""

from dataclasses import replace

import pytest

from app.offer_lines import Columns, facts, mark, warning
from app.ranking import Offer
from runtime.sources import catalogue
from runtime.sources.fit import Fit, Lack

GB = 10**9
LLAMA = catalogue.find("Meta-Llama-3-8B-Instruct")
ON_GPU = Offer(
    LLAMA.name,
    LLAMA.label,
    LLAMA.name,
    LLAMA,
    Fit("awq4", True, 5_030_000_000, 3_900_000_000, 32 * GB, 1.0),
    42.4,
)


def line(offer, width):
    columns = Columns.within(width, 24)
    return "".join(text for text, _ in columns.cells(offer)).rstrip(), columns.header()


def test_a_wide_list_shows_everything():
    text, header = line(ON_GPU, 100)
    assert text == (
        "  Llama 3 8B Instruct          ~42  5.03 GB  4-bit, lossless     16.1 GB"
        "  needs a token  Meta Llama 3 Community License"
    )
    for title in ("~tok/s", "memory", "on this machine", "download"):
        assert title in header
    assert header.index("~tok/s") + len("~tok/s") == text.index("~42") + len("~42")
    assert header.index("on this machine") == text.index("4-bit")


@pytest.mark.parametrize(("width", "speed"), [(60, True), (35, False)])
def test_narrow_ones_keep_name_and_verdict(width, speed):
    text, header = line(ON_GPU, width)
    assert "Llama 3 8B Instruct" in text
    assert "4-bit" in text
    assert ("~42" in text, "~tok/s" in header) == (speed, speed)
    assert "GB" not in text


def test_slow_ones_have_a_decimal_and_unknown_ones_nothing():
    assert "~1.8" in line(replace(ON_GPU, tokens_per_s=1.77), 60)[0]
    assert "~" not in line(replace(ON_GPU, tokens_per_s=None), 60)[0]


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({}, " "),
        ({"recommended": True}, "★"),
        ({"recommended": True, "prepared": True}, "✓"),
        ({"begun": True, "prepared": True}, "◐"),
        ({"fit": replace(ON_GPU.fit, lacks=(Lack("VRAM", GB),))}, "✗"),
    ],
)
def test_marks(changes, sign):
    assert mark(replace(ON_GPU, **changes)) == sign


def test_sentences_about_a_model_on_a_gpu():
    assert facts(replace(ON_GPU, recommended=True)) == [
        "Recommended: the largest that fits and is fast.",
        "8.0 billion weights at 4 bits: 5.03 GB of VRAM, 3.90 GB of RAM for corrections.",
        "16.1 GB to fetch, 32.0 GB of disk. Meta Llama 3 Community License. Its hub asks for a token.",
    ]


def test_sentences_about_less():
    half = replace(ON_GPU, fit=replace(ON_GPU.fit, base="int8x3", corrected=0.6))
    assert facts(half)[0].endswith(
        "at 3 bits: 5.03 GB of VRAM, 3.90 GB of RAM for corrections (60 % of it is there)."
    )
    cpu = replace(ON_GPU, fit=replace(ON_GPU.fit, host=0), recommended=True, prepared=True)
    assert facts(cpu) == ["Recommended: soonest ready.", "8.0 billion weights at 4 bits: 5.03 GB of RAM."]
    assert facts(Offer("mine", "mine", "mine", prepared=True)) == []
    assert facts(replace(ON_GPU, begun=True))[0].startswith("Continue preparing Llama 3 8B Instruct")


def test_what_is_missing_is_said_in_full():
    missing = replace(ON_GPU, fit=replace(ON_GPU.fit, lacks=(Lack("VRAM", GB), Lack("disk", 7 * GB))))
    assert warning(missing) == (
        "Llama 3 8B Instruct does not fit: 1.00 GB of the GPU's memory and 7.00 GB of disk space are "
        "missing. Enter again takes it all the same."
    )
    assert missing.verdict == "lacks 7.00 GB disk"
