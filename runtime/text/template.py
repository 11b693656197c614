"""From a conversation to the text the model was trained to continue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runtime.protocol.commands import Message
from runtime.text import files
from runtime.text.sandbox import TemplateRefusedError, compile_template, render
from runtime.text.special import special_tokens

# For base models: a plain dialogue, ended where the model would go on with the user's next line.
PLAIN = """\
{{ bos_token }}{% for message in messages %}
{% if message.role == 'system' %}{{ message.content }}

{% elif message.role == 'user' %}User: {{ message.content }}
{% else %}Assistant: {{ message.content }}
{% endif %}{% endfor %}
Assistant:"""
PLAIN_STOPS = ("\nUser:",)


class ChatTemplate:
    """A compiled chat template. `stops`: stop strings that belong to it; `plain`: the model brought none."""

    def __init__(self, source: str | None, tokens: dict[str, str]) -> None:
        self.plain = source is None
        self.stops = PLAIN_STOPS if self.plain else ()
        self._tokens = tokens if source is not None else {"bos_token": tokens.get("bos_token", "")}
        self._template = compile_template(PLAIN if source is None else source)

    @classmethod
    def from_folder(cls, folder: Path, first_token: str = "") -> ChatTemplate:
        """The template of the model in `folder`; `first_token` begins the plain one where there is none."""
        source = template_source(folder)
        tokens = special_tokens(folder) if source is not None else {"bos_token": first_token}
        return cls(source, tokens)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt, up to where the assistant begins. Raises DecdecError when the template cannot do it."""
        try:
            return self._render(messages)
        except TemplateRefusedError:
            if messages[0].role != "system" or len(messages) < 2:
                raise
            return self._render(fold_system(messages))

    def _render(self, messages: Sequence[Message]) -> str:
        dicts = [{"role": message.role, "content": message.content} for message in messages]
        variables: dict[str, Any] = {"tools": None, "documents": None, **self._tokens}
        return render(self._template, messages=dicts, add_generation_prompt=True, **variables)


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Some models have no system role: its text then begins the first question."""
    system, first, *rest = messages
    return [Message(first.role, f"{system.content}\n\n{first.content}"), *rest]


def template_source(folder: Path) -> str | None:
    """The text of chat_template.jinja, or of tokenizer_config.json's chat_template; None without one."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return files.read_bytes(path).decode("utf-8", errors="replace")
    entry = files.read_object(folder / "tokenizer_config.json").get("chat_template")
    if isinstance(entry, list):
        named = {each.get("name"): each.get("template") for each in entry if isinstance(each, dict)}
        entry = named.get("default")
    return entry if isinstance(entry, str) else None
