"""Errors are sentences."""

import pytest

from runtime.errors import DecdecError, Interrupted


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (("It failed",), "It failed."),
        (("It failed", "the disk is full"), "It failed: the disk is full."),
        (("It failed", "", "free some space"), "It failed. Free some space."),
        (("It failed", "no model", "did you mean x?"), "It failed: no model. Did you mean x?"),
        (("It\nfailed", "a  b"), "It failed: a b."),
        (("It failed", "the library says so.", "try again."), "It failed: the library says so. Try again."),
    ],
)
def test_sentence(parts, sentence):
    assert DecdecError(*parts).sentence == sentence
    assert str(DecdecError(*parts)) == sentence


def test_an_interrupt_has_the_shell_s_code():
    assert Interrupted().code == 130
