"""The tree of turns: paths, variants, removal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation import Conversation, Turn, TurnState
from runtime.protocol.commands import Message


def done(conversation, question, answer="A"):
    turn = conversation.ask(question)
    turn.answer, turn.state, turn.finish_reason = answer, TurnState.DONE, "stop"
    return turn


@pytest.fixture
def tree():
    """one - two, and in the place of two also second (shown)."""
    conversation = Conversation("S")
    one = done(conversation, "one")
    two = done(conversation, "two")
    second = conversation.branch(two, "second")
    second.state = TurnState.DONE
    return conversation, one, two, second


def test_the_newest_branch_is_shown_and_variants_are_in_order(tree):
    conversation, one, two, second = tree
    assert conversation.turns == [one, second]
    assert conversation.variants(two) == conversation.variants(second) == [two, second]
    assert conversation.step(second, -1) is two
    assert conversation.turns == [one, two]
    assert conversation.step(two, -1) is None
    assert conversation.shown_variant(second) is two


def test_a_variants_own_continuation_comes_back_with_it(tree):
    conversation, one, two, second = tree
    conversation.choose(two)
    three = done(conversation, "three")
    conversation.choose(second)
    assert conversation.turns == [one, second]
    conversation.choose(two)
    assert conversation.turns == [one, two, three]


def test_removing_takes_what_followed_and_shows_another_variant(tree):
    conversation, one, two, second = tree
    conversation.choose(two)
    three = done(conversation, "three")
    assert conversation.remove(two) == [two, three]
    assert conversation.turns == [one, second]
    conversation.restore([two, three])
    assert conversation.turns == [one, two, three]
    assert set(map(id, conversation.all_turns)) == set(map(id, [one, two, second, three]))


def test_removing_the_first_leaves_nothing(tree):
    conversation, one, *_ = tree
    assert len(conversation.remove(one)) == 3
    assert (conversation.turns, conversation.last, conversation.last_answer) == ([], None, "")


def test_messages_leave_out_what_was_never_answered_and_what_was_thought(tree):
    conversation, one, *_ = tree
    one.answer = "<think>\nhm\n</think>\n\nYes."
    conversation.ask("next")
    assert conversation.messages() == (
        Message("system", "S"), Message("user", "one"), Message("assistant", "Yes."), Message("user", "next"),
    )  # fmt: skip


def test_an_open_answer_with_text_is_the_last_message_and_keeps_its_thinking():
    conversation = Conversation()
    turn = done(conversation, "q", "<think>\nhm")
    turn.state = TurnState.WAITING
    assert conversation.messages()[-1] == Message("assistant", "<think>\nhm")


def test_what_cannot_be_a_tree_is_refused():
    with pytest.raises(ValueError, match="parent"):
        Conversation.of([Turn("q", parent="nobody")])
    turn = Turn("q")
    with pytest.raises(ValueError, match="twice"):
        Conversation.of([turn, turn])


@given(
    st.lists(st.tuples(st.sampled_from(["ask", "branch", "step", "remove"]), st.integers(0, 9)), max_size=30)
)
def test_any_sequence_of_changes_leaves_a_path_of_parents(steps):
    conversation = Conversation()
    for what, number in steps:
        turns = conversation.all_turns
        if what == "ask" or not turns:
            conversation.ask(str(number))
        elif what == "branch":
            conversation.branch(turns[number % len(turns)], "b")
        elif what == "step":
            conversation.step(turns[number % len(turns)], -1)
        else:
            gone = conversation.remove(turns[number % len(turns)])
            assert not set(map(id, gone)) & set(map(id, conversation.all_turns))
    path, everything = conversation.turns, conversation.all_turns
    assert [turn.parent for turn in path] == ["", *(turn.id for turn in path)][: len(path)]
    assert bool(path) == bool(everything)
    if path:
        assert not [turn for turn in everything if turn.parent == path[-1].id]
        again = Conversation.of(everything, path[-1].id)
        assert again.turns == path
