"""The chat's state machine, without screen and engine."""

import msgspec
import pytest

from app.conversation import Conversation, TurnState
from app.greeting import greeting
from app.journal import Journal
from app.loading import Loading
from app.session import ChatSession, Phase
from runtime.errors import DecdecError
from runtime.protocol.commands import Load, Message, Sampling, SetSlowdown, Stop
from runtime.protocol.events import Done, Failed, KChunk, Loaded, SlowdownPoint, Stats, Token

LOADED = Loaded("m", "rtn4", "cpu", 2048, 1, (SlowdownPoint(0, KChunk(1)),))
STATS = Stats(70.0, 0.1, 5, 3, 10, 15, 2048, 0, 1.0, KChunk(1), 99)


@pytest.fixture
def session():
    s = ChatSession("Be brief.")
    s.load("m")
    s.push(LOADED)
    return s


def answered(session, question, answer, reason="stop"):
    command = session.ask(question)
    session.push(Token(answer, 1))
    session.push(Done("generate", {"text": answer, "finish_reason": reason}))
    return command


def test_a_question_carries_system_prompt_and_history(session):
    first = answered(session, "one?", "One.")
    assert first.messages == (Message("system", "Be brief."), Message("user", "one?"))
    second = session.ask("two?")
    assert second.messages == (
        Message("system", "Be brief."),
        Message("user", "one?"),
        Message("assistant", "One."),
        Message("user", "two?"),
    )


def test_every_load_is_as_asked_for():
    session = ChatSession(loading=Loading(4096, False, 8))
    assert session.load("m") == Load("m", context=4096, prompt_correction=False, kv_bits=8)
    assert ChatSession().load("m") == Load("m")


def test_what_is_noteworthy_about_a_model_greets(session):
    plain = greeting(session)
    session.push(msgspec.structs.replace(LOADED, note="Blocks [b] stay\x1b uncorrected."))
    assert greeting(session) == f"{plain}\n\nBlocks \\[b] stay\u241b uncorrected."


def test_a_blank_system_prompt_is_not_sent():
    s = ChatSession("  \n")
    s.load("m")
    s.push(LOADED)
    assert s.ask("q").messages == (Message("user", "q"),)


def test_tokens_grow_the_answer_and_done_settles_it(session):
    session.ask("q")
    session.push(Token("Hel", 1))
    session.push(Token("lo", 2))
    turn = session.conversation.last
    assert (turn.answer, turn.state, session.phase) == ("Hello", TurnState.STREAMING, Phase.ANSWERING)
    session.push(STATS)
    session.push(Done("generate", {"text": "Hello", "finish_reason": "length", "dropped_messages": 2}))
    assert (turn.state, turn.ending, turn.dropped_messages, turn.stats) == (
        TurnState.DONE,
        "length limit reached",
        2,
        STATS,
    )
    assert session.phase is Phase.READY


def test_stop_keeps_the_partial_answer_and_sends_it_as_history(session):
    session.ask("q")
    session.push(Token("Half an", 1))
    assert session.stop() == Stop()
    assert session.stop() is None
    with pytest.raises(DecdecError):
        session.ask("too early")
    session.push(Done("generate", {"text": "Half an", "finish_reason": "stopped"}))
    assert session.conversation.last.ending == "stopped"
    assert Message("assistant", "Half an") in session.ask("next").messages


def test_a_question_stopped_before_any_text_is_not_asked_again(session):
    session.ask("old")
    session.stop()
    session.push(Done("generate", {"text": "", "finish_reason": "stopped"}))
    contents = [m.content for m in session.ask("new").messages]
    assert contents == ["Be brief.", "new"]


def test_a_question_waits_for_the_model():
    s = ChatSession()
    s.load("m")
    assert s.ask("early") is None
    assert s.busy
    s.push(LOADED)
    assert s.waiting().messages == (Message("user", "early"),)
    assert s.waiting() is None


def test_a_waiting_question_can_be_taken_back():
    s = ChatSession()
    s.load("m")
    s.ask("early")
    assert s.stop() is None
    s.push(LOADED)
    assert s.waiting() is None


def test_no_model_says_what_to_do():
    with pytest.raises(DecdecError, match="F2"):
        ChatSession().ask("q")


def test_a_failed_answer_leaves_the_chat_usable(session):
    session.ask("q")
    session.push(Token("Part", 1))
    session.push(Failed("generate", "The answer failed", "memory ran out", "shorten the chat"))
    assert session.conversation.last.ending == "The answer failed: memory ran out. Shorten the chat."
    assert session.phase is Phase.READY
    assert session.ask("again") is not None


def test_a_crash_keeps_the_conversation_and_a_reload_goes_on(session):
    answered(session, "one?", "One.")
    session.ask("two?")
    session.push(Token("Tw", 1))
    session.push(Failed("worker", "The engine's process ended", "it was ended by SIGKILL"))
    assert session.phase is Phase.BROKEN
    assert not session.slider.enabled
    with pytest.raises(DecdecError, match="F12"):
        session.ask("no")
    session.load("m")
    session.push(LOADED)
    assert [m.content for m in session.ask("three?").messages] == [
        "Be brief.", "one?", "One.", "two?", "Tw", "three?",
    ]  # fmt: skip


def test_other_jobs_failing_do_not_touch_the_chat(session):
    session.push(Failed("tune", "no", code=130))
    assert session.phase is Phase.READY


def test_new_chat_forgets_a_running_answer_but_not_the_system_prompt(session):
    session.ask("q")
    session.push(Token("old", 1))
    assert session.new_chat() == Stop()
    session.push(Token(" text", 2))
    session.push(STATS)
    session.push(Done("generate", {"text": "old text", "finish_reason": "stopped"}))
    assert session.conversation.turns == []
    assert session.stats is None
    assert [m.content for m in session.ask("fresh").messages] == ["Be brief.", "fresh"]


def test_the_slider_as_a_command(session):
    session.slider.move_to(7.5)
    assert session.slowdown() == SetSlowdown(7.5)


class Kept(Journal):
    """What a journal is told, in order."""

    def __init__(self):
        self.told = []

    def conversation(self, conversation):
        self.told.append(("conversation", conversation.title, len(conversation.turns)))

    def turn(self, conversation, turn):
        self.told.append(("turn", turn.question, turn.answer, turn.state))

    def removed(self, conversation, turns):
        self.told.append(("removed", [turn.question for turn in turns]))


def test_everything_that_changes_is_told_to_the_journal(session):
    session.journal = kept = Kept()
    answered(session, "one", "One.")
    assert kept.told == [
        ("conversation", "", 1),
        ("turn", "one", "", TurnState.WAITING),
        ("turn", "one", "One.", TurnState.STREAMING),
        ("turn", "one", "One.", TurnState.DONE),
    ]
    kept.told.clear()
    session.delete(session.conversation.last)
    assert session.undo()
    session.retitle("T")
    session.tell_first("New.")
    assert kept.told == [
        ("removed", ["one"]),
        ("turn", "one", "One.", TurnState.DONE),
        ("conversation", "T", 1),
        ("conversation", "T", 1),
    ]
    assert not session.undo()


def test_answering_again_keeps_the_first_answer_as_a_variant(session):
    answered(session, "one", "One.")
    answered(session, "two", "Two.")
    first = session.conversation.last
    command = session.regenerate(first)
    assert command.messages[-1] == Message("user", "two")
    assert len(command.messages) == 4
    session.push(Token("Deux.", 1))
    session.push(Done("generate", {"text": "Deux.", "finish_reason": "stop"}))
    assert [turn.answer for turn in session.conversation.variants(first)] == ["Two.", "Deux."]
    assert session.show_variant(session.conversation.last, -1)
    assert session.conversation.last is first
    assert not session.show_variant(first, -1)


def test_an_edited_question_is_a_branch_and_what_followed_stays_in_the_other(session):
    answered(session, "one", "One.")
    first = session.conversation.last
    answered(session, "two", "Two.")
    command = session.edit(first, "uno")
    assert command.messages == (Message("system", "Be brief."), Message("user", "uno"))
    assert [turn.question for turn in session.conversation.turns] == ["uno"]
    session.stop()
    session.push(Done("generate", {"text": "", "finish_reason": "stopped"}))
    session.show_variant(session.conversation.last, -1)
    assert [turn.question for turn in session.conversation.turns] == ["one", "two"]


def test_a_cut_answer_goes_on_and_its_beginning_stays(session):
    answered(session, "one", "It is", "length")
    command = session.go_on()
    assert command.messages[-1] == Message("assistant", "It is")
    session.push(Token(" good", 1))
    assert session.conversation.last.answer == "It is good"
    session.push(Done("generate", {"text": " good.", "finish_reason": "stop"}))
    assert session.conversation.last.answer == "It is good."
    assert session.conversation.last.ending == ""
    with pytest.raises(DecdecError, match="nothing to continue"):
        session.go_on()


def test_an_answer_that_fails_while_it_goes_on_keeps_everything(session):
    answered(session, "one", "It is", "stopped")
    session.go_on()
    session.push(Token(" good", 1))
    session.push(Failed("generate", "Memory ran out"))
    assert (session.conversation.last.answer, session.conversation.last.cut) == ("It is good", True)
    session.go_on()
    session.push(Done("generate", {"text": " now", "finish_reason": "stop"}))
    assert session.conversation.last.answer == "It is good now"


def test_while_an_answer_is_written_nothing_is_deleted_or_rewritten(session):
    session.ask("one")
    turn = session.conversation.last
    for refused in (lambda: session.delete(turn), lambda: session.regenerate(turn), session.go_on):
        with pytest.raises(DecdecError, match="still being written"):
            refused()
    assert not session.show_variant(turn, -1)
    assert session.conversation.turns == [turn]


def test_another_conversation_ends_the_running_answer_which_is_kept(session):
    session.journal = kept = Kept()
    session.ask("one")
    session.push(Token("It", 1))
    old, other = session.conversation, Conversation("Other.")
    assert session.open(other) == Stop()
    assert (old.last.answer, old.last.finish_reason) == ("It", "stopped")
    assert kept.told[-1] == ("turn", "one", "It", TurnState.DONE)
    session.push(Token(" is", 2))
    session.push(Done("generate", {"text": "It is", "finish_reason": "stopped"}))
    assert (session.phase, other.turns, old.last.answer) == (Phase.READY, [], "It")


def test_sampling_holds_from_the_next_answer_on(session):
    session.sampling, session.max_tokens = Sampling(temperature=0.0), 7
    command = session.ask("one")
    assert (command.sampling, command.max_tokens) == (Sampling(temperature=0.0), 7)


def test_an_answer_from_outside_is_taken_up_at_the_end_or_as_a_variant(session):
    answered(session, "one?", "One.")
    turn = session.adopt("two?", "Two.", STATS, "length")
    assert (turn.state, turn.ending, turn.stats, turn.model) == (
        TurnState.DONE, "length limit reached", STATS, "m",
    )  # fmt: skip
    assert [t.question for t in session.conversation.turns] == ["one?", "two?"]
    assert [m.content for m in session.ask("three?").messages] == [
        "Be brief.", "one?", "One.", "two?", "Two.", "three?",
    ]  # fmt: skip
    session.push(Done("generate", {"text": "", "finish_reason": "stopped"}))
    other = session.adopt("two?", "2.", None, instead=turn)
    assert session.conversation.variants(turn) == [turn, other]
    assert session.conversation.last is other


def test_nothing_is_taken_up_while_an_answer_is_being_written(session):
    session.ask("q")
    with pytest.raises(DecdecError, match="still being written"):
        session.adopt("a", "b", None)
    assert [t.question for t in session.conversation.turns] == ["q"]


def test_what_is_taken_up_is_told_to_the_journal(session):
    told = []

    class Told(Journal):
        def conversation(self, conversation):
            told.append(conversation)

        def turn(self, conversation, turn):
            told.append(turn.answer)

    session.journal = Told()
    session.adopt("a", "b", None)
    assert told == [session.conversation, "b"]
