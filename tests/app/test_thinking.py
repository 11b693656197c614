import pytest

from app.thinking import Parts, split, visible


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("plain", Parts("", "plain")),
        ("", Parts()),
        ("<think>\nhm\n</think>\n\nYes.", Parts("hm", "Yes.")),
        ("\n<think>hm", Parts("hm", "", open=True)),
        ("<think>", Parts("", "", open=True)),
        ("<think></think>x", Parts("", "x")),
        ("<think>a</think>b</think>c", Parts("a", "b</think>c")),
        ("The tag `<think>` opens, `</think>` ends.", Parts("", "The tag `<think>` opens, `</think>` ends.")),
        ("about </think> only", Parts("", "about </think> only")),
        ("<thin", Parts("", "<thin")),
    ],
)
def test_split(answer, parts):
    assert split(answer) == parts
    assert visible(answer) == parts.text
