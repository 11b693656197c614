"""The history as a whole: what goes in comes out, is found, and can be taken back."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.conversation import Conversation, TurnState
from app.history import History, schema, store
from runtime.errors import DecdecError
from tests.app.history.conversations import conversations, facts, said


class Clock:
    """Seconds that pass when a test says so."""

    now = 1_000_000.0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=[True, False], ids=["fts5", "no fts5"])
def full_text(request, monkeypatch):
    """With the full-text module, and where SQLite was built without it."""
    if not request.param:
        monkeypatch.setattr(schema, "full_text", lambda connection: False)


@pytest.fixture
def history(tmp_path, clock):
    with contextlib.closing(History(tmp_path / "a" / "history.db", clock)) as made:
        yield made


def titles(history, words="", limit=100):
    return [entry.title for entry in history.page(words, limit).entries]


@settings(max_examples=60, deadline=None)
@given(conversations(least=1))
def test_a_conversation_comes_out_as_it_went_in(tmp_path_factory, conversation):
    with contextlib.closing(History(tmp_path_factory.mktemp("h") / "history.db")) as history:
        history.save(conversation)
        assert facts(history.load(conversation.id)) == facts(conversation)


@settings(max_examples=40, deadline=None)
@given(conversations(least=1), st.data())
def test_turn_by_turn_is_the_same_as_whole(tmp_path_factory, conversation, data):
    """Also after branches were shown, turns taken out and put back."""
    with contextlib.closing(History(tmp_path_factory.mktemp("h") / "history.db")) as history:
        known = Conversation(
            conversation.system_prompt, conversation.title, conversation.id, conversation.created
        )
        for turn in conversation.all_turns:
            history.save_turn(known, known.add(turn))
        for turn in conversation.all_turns:
            if data.draw(st.booleans()):
                known.choose(turn)
                history.save_head(known)
        gone = known.remove(data.draw(st.sampled_from(known.all_turns)))
        history.remove(known, [turn.id for turn in gone])
        if data.draw(st.booleans()):
            known.restore(gone)
            for turn in gone:
                history.save_turn(known, turn)
        if known.all_turns:
            assert facts(history.load(known.id)) == facts(known)
        else:
            assert history.load(known.id) is None


def test_what_is_not_there(history):
    assert history.load("nothing") is None
    assert history.page().entries == ()
    assert history.page("words").total == 0
    assert history.undelete() is None
    history.purge()
    assert not history.database.path.parent.exists()


def test_the_list_is_newest_first_and_counts_what_is_shown(history):
    first, second = said(("one", "a"), ("two", "")), said(("three", "b"))
    history.save(first)
    history.save(second)
    history.rename(first.id, "renamed")
    assert titles(history) == ["three", "renamed"]
    first = history.load(first.id)
    history.save_turn(first, first.turns[-1])
    page = history.page(limit=1)
    assert (page.entries[0].title, page.total) == ("renamed", 2)
    assert page.entries[0].messages == 3
    assert page.entries[0].model == "a-model"


@pytest.mark.usefixtures("full_text")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("paris", ["France"]),
        ("PARIS caf", ["France"]),
        ("capital", ["Sweden", "France"]),
        ("stockh capit", ["Sweden"]),
        ("swed", ["Sweden"]),
        ('"capital of france"', ["France"]),
        ('"of capital"', []),
        ("paris stockholm", []),
        ("東京", ["Tokyo"]),
        ("京", ["Tokyo"]),
        ("天気 tokyo", ["Tokyo"]),
        ("москва", ["Tokyo"]),
        ("مرحبا", ["Tokyo"]),
        ("हिन्दी", ["Tokyo"]),
        ("ไทย", ["Tokyo"]),
        ("😀", ["Tokyo"]),
        ("grusse", ["Tokyo"]),
        ("my_func", ["Tokyo"]),
        ("***", []),
        ("aris", []),
        ('"', []),
        ("NOT paris OR *", []),
    ],
)
def test_words_are_found_in_any_script(history, words, found):
    history.save(said(("What is the capital of France?", "Paris, with its cafés."), title="France"))
    history.save(
        said(
            ("東京の天気は", "Москва́, मेरी हिन्दी, ภาษาไทย"),
            ("Grüße 😀", "مَرْحَبًا my_func()"),
            title="Tokyo",
        )
    )
    history.save(said(("What is the capital?", "Stockholm."), title="Sweden"))
    assert titles(history, words) == found
    with contextlib.closing(History(history.database.path)) as again:
        assert titles(again, words) == found


@pytest.mark.usefixtures("full_text")
def test_a_search_shows_where_the_words_stand(history):
    history.save(said(("first", "nothing here"), ("second", "the needle is here"), title="Hay"))
    entry = history.page("needle").entries[0]
    start, end = entry.excerpt.spans[0]
    assert entry.excerpt.text[start:end] == "needle"
    assert history.page("hay").entries[0].excerpt is None


@pytest.mark.usefixtures("full_text")
def test_the_search_knows_the_text_as_it_is_now(history):
    conversation = said(("question", "old"))
    turn = conversation.last
    history.save(conversation)
    assert titles(history, "old") == ["question"]
    turn.answer = "new"
    history.save_turn(conversation, turn)
    assert titles(history, "old") == []
    assert titles(history, "new") == ["question"]
    conversation.title = "Named"
    history.save_head(conversation)
    assert titles(history, "named new") == ["Named"]
    turn.state, turn.answer = TurnState.STREAMING, "new text that"
    history.save_turn(conversation, turn)
    turn.answer += " grows"
    history.grow(conversation, turn, len("new text that"))
    assert titles(history, '"that grows"') == ["Named"]
    assert "grows" in history.page("grows").entries[0].excerpt.text
    history.remove(conversation, [turn.id])
    assert titles(history, "new") == []


def test_a_file_without_index_gets_one(history, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(schema, "full_text", lambda connection: False)
        history.save(said(("findable", "text")))
        history.close()
    assert titles(history, "findable text") == ["findable"]
    with history.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM search WHERE search MATCH 'text'").fetchone()[0] == 1


@pytest.mark.parametrize(("limit", "left"), [(0, 7), (1, 6), (3, 4), (7, 0), (None, 0)])
def test_the_index_is_kept_up_in_batches(history, monkeypatch, limit, left):
    monkeypatch.setattr(store, "AT_ONCE", 2)
    history.save(said(*[("q", "a")] * 7))
    history.index(limit)
    with history.database.reading() as connection:
        late = connection.execute("SELECT count(*) FROM turns WHERE indexed = 0").fetchone()[0]
    assert late == left


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE search_data SET block = x'ffffffffff' WHERE id = 10",
        "UPDATE search_data SET block = x'ff' WHERE id > 10",
        "DELETE FROM search_data WHERE id = 10",
        "DELETE FROM search_data WHERE id > 10",
    ],
)
def test_a_damaged_index_is_built_again(history, damage):
    history.save(said(("findable", "text")))
    assert titles(history, "findable") == ["findable"]
    with history.database.changing() as connection:
        connection.execute(damage)
    history.close()
    with pytest.raises(DecdecError, match="index"):
        history.page("findable")
    assert titles(history, "findable") == ["findable"]
    assert [path.suffix for path in history.database.path.parent.iterdir() if path.suffix == ".bad"] == []


def test_deleting_can_be_taken_back_for_a_week(history, clock):
    kept, first, second = (said((name, "x")) for name in ("kept", "first", "second"))
    for conversation in (kept, first, second):
        history.save(conversation)
    history.delete(first.id)
    history.delete(second.id)
    assert titles(history) == titles(history, "x") == ["kept"]
    assert history.undelete().title == "second"
    history.purge()
    assert history.undelete().title == "first"
    assert titles(history) == titles(history, "x") == ["second", "first", "kept"]
    history.delete(first.id)
    clock.now += store.KEPT_DELETED_S + 1
    history.purge()
    assert history.undelete() is None
    assert history.load(first.id) is None
    assert titles(history) == titles(history, "x") == ["second", "kept"]
    with history.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone()[0] == 2


def test_who_goes_on_with_a_deleted_conversation_has_it_back(history):
    conversation = said(("question", "answer"))
    history.save(conversation)
    history.delete(conversation.id)
    history.save_turn(conversation, conversation.ask("more"))
    assert titles(history) == ["question"]


def test_what_another_program_added_or_lost_is_mended(history):
    """Two programs have one conversation open: each adds to it, and one loses the other's parent."""
    mine = said(("one", "a"))
    history.save(mine)
    with contextlib.closing(History(history.database.path)) as other:
        theirs = other.load(mine.id)
        other.save_turn(theirs, theirs.ask("theirs"))
        history.save_turn(mine, mine.ask("mine"))
        history.save(mine)
        assert [t.question for t in history.load(mine.id).all_turns] == ["one", "theirs", "mine"]
        other.remove(theirs, [turn.id for turn in theirs.remove(theirs.turns[0])])
        assert [t.question for t in history.load(mine.id).all_turns] == ["mine"]
        history.save_turn(mine, mine.last)
    found = history.load(mine.id)
    assert {t.question for t in found.all_turns} == {"one", "mine"}
    assert [t.question for t in found.turns] == ["one", "mine"]


def test_a_turn_that_was_open_has_ended_with_the_program(history):
    conversation = said(("one", "a"))
    turn = conversation.ask("two")
    turn.state, turn.answer = TurnState.STREAMING, "partial"
    history.save(conversation)
    found = history.load(conversation.id).last
    assert (found.answer, found.state, found.finish_reason) == ("partial", TurnState.DONE, "interrupted")
    assert found.cut


def test_a_title_is_named_after_the_first_question_again(history):
    conversation = said(("question", "x"), title="Given")
    history.save(conversation)
    history.rename(conversation.id, "")
    assert titles(history) == ["question"]
    assert history.load(conversation.id).title == ""
    history.rename("nothing", "x")


def test_taking_in_gives_new_ids_only_where_there_are_such(history, clock):
    conversation = said(("question", "x"))
    assert history.add(conversation) is conversation
    again = history.add(conversation)
    assert again.id != conversation.id
    assert {t.id for t in again.all_turns}.isdisjoint(t.id for t in conversation.all_turns)
    assert [(t.question, t.answer) for t in again.turns] == [("question", "x")]
    assert len(titles(history)) == 2
    assert all(entry.updated <= clock.now for entry in history.page().entries)


def test_many_are_taken_in_all_or_none(history, monkeypatch):
    added = History._added

    def failing(self, connection, conversation):
        if conversation.title == "3":
            raise DecdecError("No more")
        return added(self, connection, conversation)

    monkeypatch.setattr(History, "_added", failing)
    many = [said(("q", "a")) for _ in range(4)]
    for number, each in enumerate(many):
        each.title = str(number)
    with pytest.raises(DecdecError, match="No more"):
        history.add_all(many)
    assert history.page().total == 0
    assert len(history.add_all(many[:3])) == history.page().total == 3


def test_half_a_surrogate_pair_loses_nothing_else(history):
    conversation = said(("a\ud83d question", "and\udc00 \x00 answer"))
    history.save(conversation)
    assert history.load(conversation.id).last.answer == "and? \x00 answer"
    assert titles(history, "answer") == ["a\ufffd question"]
