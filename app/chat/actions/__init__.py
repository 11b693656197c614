"""What the chat screen does, by group: one mixin a group of `app.actions`."""

from app.chat.actions.answers import AnswerActions
from app.chat.actions.chats import ChatActions
from app.chat.actions.program import ProgramActions
from app.chat.actions.setup import SetupActions
from app.chat.actions.slide import SlideActions

__all__ = ["AnswerActions", "ChatActions", "ProgramActions", "SetupActions", "SlideActions"]
