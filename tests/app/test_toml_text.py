"""One value of a TOML text changes, and nothing else."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import toml_text

TEXT = """\
# head
# size = 1
name = "x"  # why

[inner]
# size = 2 # note
on = true

[other]
size = 9
"""


def test_a_commented_line_is_taken_in_where_it_stands():
    assert toml_text.with_value(TEXT, "", "size", 5) == TEXT.replace("# size = 1", "size = 5")
    assert toml_text.with_value(TEXT, "inner", "size", 5) == TEXT.replace("# size = 2", "size = 5")


def test_a_set_line_keeps_its_comment():
    assert toml_text.with_value(TEXT, "", "name", "y") == TEXT.replace('"x"  # why', '"y"  # why')
    assert toml_text.with_value(TEXT, "other", "size", 3) == TEXT.replace("size = 9", "size = 3")


@pytest.mark.parametrize(
    ("table", "key"), [("", "new"), ("inner", "new"), ("third", "new"), ("third", "a b.c")]
)
def test_a_new_key_is_added_to_its_table(table, key):
    text = toml_text.with_value(TEXT, table, key, ["v"])
    wanted = tomllib.loads(TEXT)
    (wanted.setdefault(table, {}) if table else wanted)[key] = ["v"]
    assert tomllib.loads(text) == wanted
    assert [line for line in TEXT.splitlines() if line and line not in text] == []


def test_dropping_makes_a_comment_of_the_line():
    text = toml_text.with_value(TEXT, "inner", "size", 5)
    assert toml_text.without(text, "inner", "size", "2") == TEXT
    assert toml_text.without(TEXT, "other", "size", "0.5") == TEXT.replace("size = 9", "# size = 0.5")
    assert toml_text.without(TEXT, "", "missing", "1") == TEXT
    assert tomllib.loads(toml_text.without(TEXT, "other", "size"))["other"] == {}


def test_lines_within_a_text_are_no_keys():
    text = 'prompt = """\n# size = 1\n[inner]\nsize = 0\n"""\n'
    for after in (toml_text.with_value(text, "", "size", 2), toml_text.with_value(text, "inner", "size", 2)):
        assert tomllib.loads(after)["prompt"] == tomllib.loads(text)["prompt"]
    with_size = toml_text.with_value(text, "", "size", 0)
    assert tomllib.loads(toml_text.without(with_size, "", "size", "1")) == tomllib.loads(text)


WAYS = [
    "inner.size = 4 # c\n",
    "inner = {size = 4} # c\n",
    "[ inner ]\nsize = 4 # c\n",
    "inner = 3\n",
    "\r\n[inner]\r\n",
]


@pytest.mark.parametrize("text", WAYS)
def test_every_way_to_write_a_table(text):
    after = toml_text.with_value(text, "inner", "size", 7)
    assert tomllib.loads(after)["inner"]["size"] == 7
    assert ("# c" in after) is ("# c" in text)
    assert "size" not in tomllib.loads(toml_text.without(after, "inner", "size", "4")).get("inner", {})


def test_what_is_no_toml_is_refused():
    with pytest.raises(ValueError, match="line"):
        toml_text.with_value("a = ", "", "b", 1)


@settings(deadline=None)
@given(st.text(), st.text(min_size=1), st.sampled_from(["", "inner", "x"]))
def test_any_text_comes_back(value, key, table):
    if table == "" and key in ("inner", "other", "name"):
        return
    after = tomllib.loads(toml_text.with_value(TEXT, table, key, value))
    assert (after[table] if table else after)[key] == value
    assert after["name"] == "x"
