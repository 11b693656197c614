"""Exports as JSON, and imports from anybody."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.conversation import TurnState
from app.history import document, tree
from runtime.protocol.events import Stats
from tests.app.history.conversations import conversations, deep, facts, said


@settings(max_examples=100, deadline=None)
@given(st.lists(conversations(least=1), min_size=1, max_size=3))
def test_every_branch_comes_back(given_conversations):
    read = document.decode(document.encode(given_conversations))
    for before, after in zip(given_conversations, read, strict=True):
        assert facts(after) == {**facts(before), "title": before.title}


@given(conversations(least=1))
def test_renewed_is_the_same_under_other_ids(conversation):
    renewed = tree.renewed(conversation)
    names = [turn.id for turn in conversation.all_turns]
    order = {turn.id: place for place, turn in enumerate(renewed.all_turns)}
    assert set(names).isdisjoint(order)
    for place, (old, new) in enumerate(zip(conversation.all_turns, renewed.all_turns, strict=True)):
        assert (old.question, old.answer, old.stats) == (new.question, new.answer, new.stats)
        assert order.get(new.parent, -1) == (names.index(old.parent) if old.parent else -1)
        assert order[new.id] == place
    assert {names[order[id]] for id in tree.shown(renewed)} == tree.shown(conversation)


def test_the_format_is_the_documented_one():
    conversation = said(("q", "a"), title="T", id="c1", created=5.0)
    turn = conversation.last
    turn.id, turn.created = "t1", 6.0
    assert json.loads(document.encode([said(("q", "a"), title="T", id="c1", created=5.0)]))["version"] == 1
    encoded = json.loads(document.encode([conversation]))
    assert encoded["format"] == "decdec-chat conversations"
    assert encoded["conversations"][0]["title"] == "T"
    assert set(encoded["conversations"][0]["turns"][0]) == {
        "id", "parent", "shown", "question", "answer", "state", "finish_reason", "failure", "model",
        "created", "dropped_messages", "stats",
    }  # fmt: skip


def test_an_answer_that_is_being_written_is_exported_as_interrupted():
    conversation = said(("q", "a"))
    conversation.last.state = TurnState.STREAMING
    read = document.decode(document.encode([conversation]))[0].last
    assert (read.answer, read.finish_reason, read.open) == ("a", "interrupted", False)


def test_what_could_not_be_read_again_is_not_written():
    conversation = said(("q", "a"), title="t" * 1000)
    turn = conversation.last
    turn.failure, turn.model = "f" * 10_000, "m" * 1000
    turn.stats = msgspec.structs.replace(msgspec.convert(STATS, Stats), decode_tokens_per_s=float("inf"))
    read = document.decode(document.encode([conversation]))[0]
    assert (read.last.stats, len(read.title), len(read.last.model)) == (None, 300, 300)


def turn(**fields):
    return {"id": "t", "question": "q", **fields}


def doc(*turns, **fields):
    conversation = {"id": "c", "turns": list(turns), **fields}
    return {"format": document.FORMAT, "version": 1, "conversations": [conversation]}


STATS = {
    "type": "stats", "decode_tokens_per_s": 1, "prefill_s": 1, "prompt_tokens": 1, "reused_tokens": 1,
    "completion_tokens": 1, "context_used": 1, "context_limit": 1, "slowdown_target_pct": 1,
    "slowdown_measured_pct": None, "k_chunk": {},
}  # fmt: skip


def test_the_least_there_may_be():
    read = document.decode(json.dumps(doc(turn(), unknown={"deep": [1]})).encode())
    assert [t.question for t in read[0].turns] == ["q"]
    with_stats = document.decode(json.dumps(doc(turn(stats=STATS))).encode())
    assert with_stats[0].last.stats.completion_tokens == 1


HOSTILE = {
    "nothing": b"",
    "no object": b"[]",
    "no JSON": b"hello",
    "another program": {"format": "x", "version": 1, "conversations": []},
    "a newer version": {"format": document.FORMAT, "version": 2, "conversations": []},
    "no version": {"format": document.FORMAT, "conversations": []},
    "no conversation": {"format": document.FORMAT, "version": 1, "conversations": []},
    "no turn": doc(),
    "a missing parent": doc(turn(parent="x")),
    "a parent behind its child": doc(turn(id="a", parent="b"), turn(id="b")),
    "its own parent": doc(turn(parent="t")),
    "a circle": doc(turn(id="a", parent="b"), turn(id="b", parent="a")),
    "one id twice": doc(turn(), turn()),
    "an id that is a path": doc(turn(id="../../x")),
    "an id with a line end": doc(turn(id="x\n")),
    "an endless id": doc(turn(id="x" * 100)),
    "no id": doc(turn(id="")),
    "a title without end": doc(turn(), title="x" * 100_000),
    "an unknown state": doc(turn(state="waiting")),
    "text that is a number": doc(turn(answer=5)),
    "a time before all": doc(turn(created=-1.0)),
    "a time beyond all": doc(turn(created=1e300)),
    "a negative count": doc(turn(dropped_messages=-1)),
    "figures of another kind": doc(turn(stats={"type": "stats"})),
    "figures beyond all": doc(turn(stats={**STATS, "completion_tokens": 1 << 70})),
    "speed beyond all": doc(turn(stats={**STATS, "decode_tokens_per_s": 1e200})),
    "figures below all": doc(turn(stats={**STATS, "k_chunk": {"qkv": -(1 << 70)}})),
    "not a number": json.dumps(doc(turn(created=0.5))).replace("0.5", "NaN").encode(),
    "infinity": json.dumps(doc(turn(created=0.5))).replace("0.5", "1e999").encode(),
    "half a surrogate pair": json.dumps(doc(turn(question="\ud800"))).encode(),
    "no UTF-8": json.dumps(doc(turn())).replace("q", "\xff").encode("latin-1"),
    "depth without end": b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "too many turns": doc(*[turn(id=f"t{n}") for n in range(document.MAX_TURNS + 1)]),
}


@pytest.mark.parametrize("given", HOSTILE.values(), ids=HOSTILE)
def test_what_is_wrong_is_refused_in_a_line(given):
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    with pytest.raises(ValueError, match=r"^[^\n]{3,200}$"):
        document.decode(data)


def test_a_chain_has_an_end(monkeypatch):
    monkeypatch.setattr(document, "MAX_DEPTH", 10)
    assert len(document.decode(document.encode([deep(10)]))[0].turns) == 10
    with pytest.raises(ValueError, match="10"):
        document.decode(document.encode([deep(11)]))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_spoiled_document_is_read_or_refused(data):
    """Any piece of a good document replaced by anything."""
    good = doc(turn(id="a", stats=STATS), turn(id="b", parent="a", shown=True), turn(id="c"))
    places = list(spots(good))
    holder, key = data.draw(st.sampled_from(places))
    junk = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.just([])
        | st.just({})
    )
    holder[key] = data.draw(junk)
    try:
        read = document.decode(json.dumps(good).encode())
    except ValueError:
        return
    assert all(each.turns for each in read)


def spots(value):
    """Every place in a document, as what holds it and under which key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from spots(value[key])
