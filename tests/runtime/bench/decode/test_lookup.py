"""Prompt lookup replayed: drafts against a search by hand, steps, what they are worth, and the table."""

import itertools
import json
import random

import pytest

from runtime.bench.decode import lookup
from runtime.bench.decode.lookup import Question, Text, Writer
from runtime.bench.decode.lookup_steps import Lookup, Places, Step, Worth, steps
from runtime.text import Tokenizer
from tests.fakes.fake_engine import FakeEngine
from tests.fakes.small_tokenizers import write_byte_level

COST = {1: 1.0, 2: 1.1, 4: 1.4, 8: 2.0}


def draft_by_search(tokens, wanted):
    for n in range(min(wanted.longest, len(tokens)), wanted.shortest - 1, -1):
        for at in range(len(tokens) - n - 1, -1, -1):
            if tokens[at : at + n] == tokens[-n:]:
                return tokens[at + n : at + n + wanted.draft]
    return []


@pytest.mark.parametrize("wanted", [Lookup(1), Lookup(3, 4, 1), Lookup(7, 2, 2)])
def test_drafts_follow_the_latest_place_of_the_longest_sequence(wanted):
    generator = random.Random(0)
    places = Places(wanted)
    for _ in range(300):
        places.append(generator.randrange(4))
        assert places.draft() == draft_by_search(places.tokens, wanted)


def test_an_answer_that_quotes_the_prompt_takes_few_steps():
    prompt = list(range(100, 130))
    taken = list(steps(prompt, [7, *prompt[5:25], 8], Lookup(7, 3, 1)))
    # 105 has to come by itself: 7 stands nowhere before.
    assert [step.accepted for step in taken] == [0, 7, 7, 3]
    assert sum(step.accepted + 1 for step in taken) == 21
    assert [step.vectors for step in taken] == [1, 8, 8, 8]


def test_no_step_gives_more_than_the_answer_has():
    taken = list(steps([1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 4, 5], Lookup(7, 1, 1)))
    assert taken == [Step(drafted=7, accepted=2)]


@pytest.mark.parametrize("draft", [1, 3, 7])
def test_every_answer_comes_out_whole(draft):
    generator = random.Random(draft)
    for _ in range(50):
        prompt, answer = ([generator.randrange(5) for _ in range(20)] for _ in range(2))
        taken = list(steps(prompt, answer, Lookup(draft, 3, 1)))
        assert sum(step.accepted + 1 for step in taken) == len(answer) - 1


def test_a_text_without_repetition_costs_nothing():
    worth = Worth(tuple(steps(range(50), range(50, 90), Lookup(7))), COST)
    assert (worth.speed, worth.accepted_per_step, worth.drafted_share) == (1.0, 0.0, 0.0)
    assert (worth.accepted_share, worth.even_cost) == (0.0, 1.0)


def test_worth_is_tokens_over_time():
    worth = Worth((Step(0, 0), Step(3, 2), Step(1, 1), Step(7, 0)), COST)
    assert worth.tokens == 7
    assert worth.speed == pytest.approx(7 / (1.0 + 1.4 + 1.1 + 2.0))
    assert worth.accepted_per_step == 0.75
    assert worth.accepted_share == pytest.approx(3 / 11)
    assert worth.drafted_share == 0.75
    # Four tokens are there without drafts; three steps with one gave three more.
    assert worth.even_cost == 2.0


@pytest.mark.parametrize("wrong", [{"draft": 0}, {"draft": 8}, {"draft": 1, "shortest": 4}])
def test_impossible_lookups_are_refused(wrong):
    with pytest.raises(ValueError, match=r"can be looked for|takes drafts"):
        Lookup(**wrong)


def test_rows_are_by_origin_task_and_way():
    texts = [Text("chat", "greedy", (1, 2, 3), (1, 2, 3, 1)), Text("edit", "greedy", (1, 2), (1, 2, 1))]
    lookups = [Lookup(draft, shortest=n) for n in lookup.SHORTEST for draft in lookup.DRAFTS]
    rows = list(lookup.acceptance_rows(texts, COST, lookups))
    assert [row["task"] for row in rows] == ["chat"] * 3 + ["edit"] * 3 + ["all"] * 9
    assert [row["tokens"] for row in rows] == [3] * 3 + [2] * 3 + [5] * 9


def test_a_model_answers_every_question_greedily_and_sampled(tmp_path):
    write_byte_level(tmp_path)
    end = Tokenizer.from_folder(tmp_path).control["<|im_end|>"]
    replies = itertools.repeat([5, 6, 7])
    writer = Writer(FakeEngine(replies, 600, end), tmp_path)
    texts = lookup.collect(writer, [Question("edit", "the fox", "the dog")], lambda what: None)
    assert [text.origin for text in texts] == ["written", "greedy", "sampled"]
    assert texts[1].answer == texts[2].answer == (5, 6, 7, end)
    assert len({text.prompt for text in texts}) == 1


def test_results_are_two_files_with_what_they_were_measured_on(tmp_path):
    rows = [{"answers": "greedy", "speed": 1.5}]
    lookup.write(tmp_path / "found", {"machine": "a laptop"}, rows)
    assert (tmp_path / "found.md").read_text().startswith("# Prompt lookup decoding\n\nmachine a laptop.\n")
    assert json.loads((tmp_path / "found.json").read_text())["rows"] == rows


def test_the_project_s_own_questions_can_be_read():
    asked = lookup.questions(lookup.Path("docs/benchmarks/lookup-prompts.json"))
    assert {question.kind for question in asked} == {"chat", "summarise", "edit", "code"}
    assert all(question.answer for question in asked if question.kind != "chat")
