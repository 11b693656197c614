"""Named system prompts: nothing that was typed is lost on the way between them."""

from app.system_prompts import MAX_NAME, PromptDrafts


def test_names_are_in_order_and_choosing_shows_their_text():
    drafts = PromptDrafts("now", {"b": "B", "A": "aa"})
    assert (drafts.names, drafts.text) == (["A", "b"], "now")
    drafts.choose("b")
    assert drafts.text == "B"
    drafts.choose("missing")
    assert drafts.chosen == "b"


def test_what_is_typed_stays_with_its_name():
    drafts = PromptDrafts("now", {"a": "A"})
    drafts.typed("now!")
    drafts.choose("a")
    drafts.typed("A!")
    assert drafts.changed
    drafts.choose("")
    assert drafts.text == "now!"
    drafts.choose("a")
    assert drafts.text == "A!"
    assert drafts.library == {"a": "A"}


def test_saving_under_the_same_and_another_name():
    drafts = PromptDrafts("", {"a": "A"})
    drafts.choose("a")
    drafts.typed(" A2 ")
    assert drafts.save("a") == ""
    assert (drafts.library, drafts.changed) == ({"a": "A2"}, False)
    drafts.typed("B")
    assert drafts.save(" b \n c ") == ""
    assert drafts.library == {"a": "A2", "b c": "B"}
    assert drafts.chosen == "b c"
    drafts.choose("a")
    assert drafts.text == "A2"


def test_what_cannot_be_saved_is_said():
    drafts = PromptDrafts("text", {})
    assert "name is needed" in drafts.save(" \t")
    assert str(MAX_NAME) in drafts.save("x" * (MAX_NAME + 1))
    drafts.typed("  ")
    assert "no text" in drafts.save("a")
    assert drafts.library == {}


def test_deleting_and_bringing_back():
    drafts = PromptDrafts("now", {"a": "A"})
    assert "no name" in drafts.delete()
    drafts.choose("a")
    drafts.typed("A!")
    assert "a is deleted" in drafts.delete()
    assert (drafts.library, drafts.chosen, drafts.text) == ({}, "", "now")
    assert "back" in drafts.delete()
    assert (drafts.library, drafts.chosen, drafts.text) == ({"a": "A!"}, "a", "A!")
