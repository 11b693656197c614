"""Reasoning and answer as one text."""

import pytest

from runtime.client.remote.thinking import ThinkingJoiner


@pytest.mark.parametrize(
    ("continued", "pieces", "text"),
    [
        ("", [("", "Hi"), ("", " you")], "Hi you"),
        ("", [("a", ""), ("b", ""), ("", "Hi"), ("", "!")], "<think>\nab\n</think>\n\nHi!"),
        ("", [("a", "Hi")], "<think>\na\n</think>\n\nHi"),
        ("", [("", ""), ("", "\n"), ("a", ""), ("", "Hi")], "\n<think>\na\n</think>\n\nHi"),
        ("", [("a", "")], "<think>\na\n</think>\n"),
        ("", [("", "Hi"), ("late", ""), ("", "!")], "Hi!"),
        ("", [("", "<think>\nown"), ("", "</think>Hi")], "<think>\nown</think>Hi"),
        ("Half", [("a", ""), ("", " done")], " done"),
        ("<think>\nhalf", [("b", ""), ("", "Hi")], "b\n</think>\n\nHi"),
        ("<think>\nhalf", [("", " b</think>Hi")], " b</think>Hi"),
        ("<think>\na\n</think>Half", [("a", ""), ("", " done")], " done"),
        ("", [], ""),
    ],
)
def test_thinking(continued, pieces, text):
    joiner = ThinkingJoiner(continued)
    assert "".join(joiner.push(*piece) for piece in pieces) + joiner.finish() == text
