"""Every action is there by one name: as method, as key, in the palette, as slash command and in the help."""

import inspect

import pytest
from textual.binding import Binding

from app.actions import ACTIONS, by_name, by_slash
from app.chat.actions import AnswerActions, ChatActions, ProgramActions, SetupActions, SlideActions
from app.chat.app import ChatApp
from app.chat.screens.chat import ChatScreen
from app.helping import groups
from app.keymap import Keymap, checked
from tests.app.chat.helpers import ask, running

GROUPS = {
    "Answers": AnswerActions,
    "Conversations": ChatActions,
    "Slider": SlideActions,
    "Model": SetupActions,
    "Program": ProgramActions,
}
BINDINGS = [each for each in (*ChatScreen.BINDINGS, *ChatApp.BINDINGS) if isinstance(each, Binding)]
each_action = pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)


def method(action):
    return getattr(ChatScreen, f"action_{action.name}", None)


@each_action
def test_it_is_a_method_of_its_group_that_says_what_it_does(action):
    assert method(action) is not None
    assert method(action).__doc__
    if action.name != "follow":
        assert getattr(GROUPS[action.group], f"action_{action.name}") is method(action)


@each_action
def test_what_may_follow_the_command_is_what_the_method_takes(action):
    parameters = list(inspect.signature(method(action)).parameters.values())[1:]
    assert all(each.default is not inspect.Parameter.empty for each in parameters)
    if action.argument:
        assert parameters[0].default == ""
        assert parameters[0].annotation in ("str", str)
    else:
        assert all(each.annotation not in ("str", str) for each in parameters)


@each_action
def test_its_keys_are_bound_by_its_name(action):
    bound = [binding for binding in BINDINGS if binding.id == action.name]
    assert [(binding.key, binding.action) for binding in bound] == [(action.keys, action.name)]
    assert bound[0].priority


@each_action
def test_its_command_reaches_it_and_takes_no_more_than_it_should(action):
    assert by_slash(f" {action.slash} ").action is action
    assert by_name(action.name) is action
    assert (by_slash(f"{action.slash} what ever") is not None) is bool(action.argument)
    assert by_slash(f"{action.slash}x") is None
    assert action.slash.startswith("/")
    assert " " not in action.slash


@each_action
def test_it_is_in_the_help(action):
    entries = [entry for group in groups(Keymap()) for entry in group.entries]
    assert action.slash in [entry.command.split(" ")[0] for entry in entries]


def test_names_keys_titles_and_commands_are_there_once():
    for part in ("name", "title", "slash", "keys"):
        values = [getattr(action, part) for action in ACTIONS]
        assert len(set(values)) == len(values), part


@pytest.mark.usefixtures("worker", "model")
async def test_palette_commands_and_keys_do_the_same(monkeypatch):
    done = []

    def record(action):
        def does(self, argument=""):
            done.append((action.name, argument))

        async def does_later(self):
            done.append((action.name, ""))

        return does_later if inspect.iscoroutinefunction(method(action)) else does

    for action in ACTIONS:
        monkeypatch.setattr(ChatScreen, f"action_{action.name}", record(action))
    monkeypatch.setattr(ChatScreen, "check_action", lambda *_: True)

    async def quit_app(self):
        done.append(("quit", ""))

    monkeypatch.setattr(ChatApp, "action_quit", quit_app)
    async with running() as (app, pilot):
        commands = list(app.get_system_commands(app.screen))
        palette = {command.title: command for command in commands}
        assert len(palette) == len(commands)
        assert {action.title for action in ACTIONS} <= set(palette)
        for action in ACTIONS:
            for argument in ("", "some words") if action.argument else ("",):
                await ask(app, pilot, f"{action.slash} {argument}", wait=False)
                await pilot.pause()
                assert done == [(action.name, argument)]
                done.clear()
            for key in action.keys.split(","):
                await pilot.press(key)
                assert done == [(action.name, "")], key
                done.clear()
            called = palette[action.title].callback()
            if inspect.isawaitable(called):
                await called
            assert [name for name, _ in done] == [action.name]
            done.clear()


@pytest.mark.usefixtures("worker", "model")
async def test_a_key_of_a_person_s_own_does_it_and_the_usual_one_no_longer(monkeypatch):
    done = []
    monkeypatch.setattr(ChatScreen, "action_new_chat", lambda self: done.append(1))
    own, problems = checked({"new_chat": "f11", "regenerate": "ctrl+n"})
    assert problems == []
    async with running() as (app, pilot):
        app.remember(keys=own.own)
        await pilot.pause()
        await pilot.press("f11")
        assert done == [1]
        await pilot.press("ctrl+n")
        assert done == [1]
        app.remember(keys={})
        await pilot.press("ctrl+n")
        assert done == [1, 1]
