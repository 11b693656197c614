"""Titles in one line and dates in words."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.conversation import Conversation
from app.history import dates
from app.history.titles import MAX_CELLS, fit, heading
from tests.app.history.conversations import said


@pytest.mark.parametrize(
    ("conversation", "title"),
    [
        (Conversation(), "Untitled"),
        (said(("What is\n\nthis?", "x")), "What is this?"),
        (said(("q", "x"), title="Given"), "Given"),
        (said(("q", "x"), title=" \n "), "q"),
        (said(("\x1b[31mred", "x")), "␛[31mred"),
        (said(("word " * 40, "x")), "word " * 11 + "word…"),
    ],
)
def test_a_title_is_given_or_the_first_words_of_the_first_question(conversation, title):
    assert heading(conversation) == title


@given(st.text(max_size=200))
def test_a_heading_fits(question):
    conversation = Conversation()
    conversation.ask(question)
    assert cell_len(heading(conversation)) <= MAX_CELLS
    assert "\n" not in heading(conversation)


@pytest.mark.parametrize(
    ("text", "cells", "fitted"),
    [
        ("hello world", 11, "hello world"),
        ("hello world", 9, "hello…"),
        ("incomprehensible", 6, "incom…"),
        ("東京都東京都", 7, "東京都…"),
        ("👩‍🚀👩‍🚀👩‍🚀", 5, "👩‍🚀👩‍🚀…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("", 0, ""),
    ],
)
def test_texts_are_cut_between_words_and_never_within_a_character(text, cells, fitted):
    assert fit(text, cells) == fitted


NOW = datetime(2026, 5, 6, 12, 0).timestamp()  # a Wednesday


@pytest.mark.parametrize(
    ("when", "day", "moment"),
    [
        (datetime(2026, 5, 6, 11, 59, 30), "Today", "just now"),
        (datetime(2026, 5, 6, 11, 30), "Today", "30 min ago"),
        (datetime(2026, 5, 6, 0, 0), "Today", "00:00"),
        (datetime(2026, 5, 5, 23, 59), "Yesterday", "23:59"),
        (datetime(2026, 5, 4, 8, 5), "Monday", "08:05"),
        (datetime(2026, 4, 30, 0, 0), "Thursday", "00:00"),
        (datetime(2026, 4, 29, 9, 0), "29 April", "09:00"),
        (datetime(2025, 12, 31, 9, 0), "31 December 2025", "09:00"),
        (datetime(2026, 5, 7, 9, 0), "7 May", "09:00"),
    ],
)
def test_days_and_moments(when, day, moment):
    assert dates.day(when.timestamp(), NOW) == day
    assert dates.moment(when.timestamp(), NOW) == moment


@pytest.mark.parametrize("seconds", [-1e18, 1e18, float("inf"), float("nan")])
def test_a_time_that_no_calendar_has_is_no_failure(seconds):
    assert dates.day(seconds, NOW)
    assert dates.stamp(seconds)
