from __future__ import annotations

import json
import time

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from runtime.errors import DecdecError
from runtime.protocol import Message
from runtime.text import sandbox
from runtime.text.template import ChatTemplate, template_source
from tests.fakes.chat_templates import GEMMA, LLAMA3, PHI3, QWEN3_THINKING

TOKENS = {"bos_token": "<bos>", "eos_token": "<eos>"}
CHAT = [
    Message("user", "  Hi\n"),
    Message("assistant", "<think>\nx\n</think>\n\nHo"),
    Message("user", 'Sü"ß & <b>'),
]
SYSTEM = [Message("system", "Be brief."), *CHAT]


@pytest.mark.parametrize("source", [LLAMA3, PHI3, QWEN3_THINKING, GEMMA])
@pytest.mark.parametrize("messages", [CHAT, SYSTEM])
def test_renders_as_transformers_does(source, messages):
    dicts = [{"role": m.role, "content": m.content} for m in messages]
    rendered, _ = render_jinja_template([dicts], chat_template=source, add_generation_prompt=True, **TOKENS)
    assert ChatTemplate(source, TOKENS).render(messages) == rendered[0]


# What templates of well-known models are written with, each in a few words of our own.
PARTS = {
    "a namespace and a call in a loop": (
        "{% for m in messages %}{% set seen = namespace(at=-1) %}{% for i in range(loop.index0, -1, -1) %}"
        "{% if messages[i].role == m.get('role') %}{% set seen.at = i %}{% endif %}{% endfor %}"
        "{{ seen.at }}{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% endfor %}"
    ),
    "a namespace given to a macro": (
        "{% macro count(to, by=1) %}{% set to.n = to.n + by %}{% endmacro %}{% set sum = namespace(n=0) %}"
        "{% for m in messages %}{{ count(sum, by=m.content | length) }}{% endfor %}{{ sum.n }}"
    ),
    "a block given to a macro": (
        "{% macro turn(role) %}<{{ role }}>{{ caller() }}{% endmacro %}"
        "{% for m in messages %}{% call turn(m.role) %}{{ m['content'] | trim }}{% endcall %}{% endfor %}"
    ),
    "neighbours in a loop, filters and slices": (
        "{% for m in messages[::-1] if m.role != 'system' %}{{ loop.previtem.role if loop.previtem }}|"
        "{{ loop.last }};{% else %}none{% endfor %}"
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | map('upper')"
        " | join('+') }}"
        "{{ messages[1:] | list | tojson(indent=2) }}"
    ),
    "recursion over what is nested": (
        "{% for k, v in {'a': {'b': {'c': 1}}}.items() recursive %}{{ k }}{% if v is mapping %}"
        "({{ loop(v.items()) }}){% elif v is number %}={{ '%03d' | format(v) }}{% endif %}{% endfor %}"
    ),
    "what is not there": (
        "{% if tools is none and documents is defined and missing is not defined %}{{ missing or 'no' }}"
        "{% endif %}{{ (tools or []) | length }}{{ messages[0].tool_calls | default('-', true) }}"
        "{{ eos_token }}"
    ),
    "text": (
        "{% set t = messages[-1].content %}{{ t.startswith('S') }}{{ t | replace('&', 'and') }}"
        "{{ t | indent(2, true) }}{{ t.rsplit(' ', 1)[0] ~ '!' * 3 }}{{ t.find('<') }}{{ t | e }}"
        "{% filter upper %}{{ t }}{% endfilter %}"
    ),
}


@pytest.mark.parametrize("messages", [CHAT, SYSTEM])
@pytest.mark.parametrize("source", PARTS.values(), ids=PARTS.keys())
def test_the_language_is_that_of_transformers(source, messages):
    dicts = [{"role": m.role, "content": m.content} for m in messages]
    rendered, _ = render_jinja_template([dicts], chat_template=source, add_generation_prompt=True, **TOKENS)
    assert ChatTemplate(source, TOKENS).render(messages) == rendered[0] != ""


def test_system_message_is_folded_where_the_template_refuses_it():
    source = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    )
    text = ChatTemplate(source, {}).render([Message("system", "S"), Message("user", "U")])
    assert text == "[user]S\n\nU"
    with pytest.raises(DecdecError, match="only"):
        ChatTemplate("{{ raise_exception('only tools') }}", {}).render([Message("user", "U")])


def test_plain_dialogue_without_a_template(tmp_path):
    template = ChatTemplate.from_folder(tmp_path, "<s>")
    chat = [Message("system", "S"), Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    assert template.render(chat) == "<s>S\n\nUser: a\nAssistant: b\nUser: c\nAssistant:"
    assert template.stops == ("\nUser:",)


def test_sources_in_order(tmp_path):
    config = tmp_path / "tokenizer_config.json"
    assert template_source(tmp_path) is None
    config.write_text(
        json.dumps(
            {"chat_template": [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]}
        )
    )
    assert template_source(tmp_path) == "d"
    config.write_text(json.dumps({"chat_template": "inline"}))
    assert template_source(tmp_path) == "inline"
    (tmp_path / "chat_template.jinja").write_text("file")
    assert template_source(tmp_path) == "file"


def test_generation_blocks_json_and_loop_controls():
    source = (
        "{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}"
        "{% generation %}{{ i }}{% endgeneration %}{% endfor %}{{ {'a': '<é>'} | tojson }}"
    )
    assert ChatTemplate(source, {}).render(CHAT) == '1{"a": "<é>"}'


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ undefined_function() }}",
        "{{ 'a' * 10**12 }}",
        "{{ 'a' * 100000000000 }}",
        "{{ '%99999999999d' % 1 }}",
        "{{ 1 // 0 }}",
        "{% for %}",
        "{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}",
        "{{ range(10 ** 9) }}",
    ],
)
def test_hostile_or_broken_template_is_one_sentence(source):
    with pytest.raises(DecdecError) as caught:
        ChatTemplate(source, {}).render([Message("user", "x")])
    assert "\n" not in caught.value.sentence


def test_endless_template_is_cut_off(monkeypatch):
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 0.2)
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    started = time.monotonic()
    with pytest.raises(DecdecError, match="ran for over"):
        ChatTemplate(loops, {}).render([Message("user", "x")])
    assert time.monotonic() - started < 2
    assert ChatTemplate("ok", {}).render([Message("user", "x")]) == "ok"
