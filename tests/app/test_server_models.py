"""What a server offers, and what of it is looked for."""

import msgspec
import pytest

from app.server_models import ServerModel, headline, matching, offered

MODELS = tuple(ServerModel(name) for name in ("Meta/Llama-3-8B", "meta/llama-3-70b", "qwen3:latest"))


def test_the_jobs_result_becomes_models():
    result = {"models": [{"id": "a", "context": 8192}, {"id": "b", "context": 0}]}
    assert offered(result) == (ServerModel("a", 8192), ServerModel("b"))
    assert [model.facts for model in offered(result)] == ["context 8 192", ""]
    assert offered({}) == ()
    with pytest.raises(msgspec.ValidationError):
        offered({"models": [{"id": 3}]})


@pytest.mark.parametrize(
    ("words", "found"),
    [("", [0, 1, 2]), ("LLAMA", [0, 1]), ("70 meta", [1]), ("  ", [0, 1, 2]), ("gpt", [])],
)
def test_names_are_found_by_all_words_in_any_order(words, found):
    assert matching(MODELS, words) == [MODELS[at] for at in found]


def test_the_headline_says_what_is_known():
    assert [headline(models)[:6] for models in (None, (), MODELS)] == ["Asking", "The se", "Models"]
