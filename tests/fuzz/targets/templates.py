"""Chat templates: a program from outside, rendered over an ordinary conversation."""

from __future__ import annotations

from pathlib import Path
from random import Random

from runtime.errors import DecdecError
from runtime.protocol.commands import Message
from runtime.text.template import ChatTemplate
from tests.fakes.chat_templates import GEMMA, LLAMA3, PHI3, QWEN3_THINKING
from tests.fuzz.mutations import mutate_bytes

NAME = "templates"

CHAT = [
    Message("system", "Be brief."),
    Message("user", "  Hi\n"),
    Message("assistant", "<think>\nx\n</think>\n\nHo"),
    Message("user", 'Sü"ß & <b> %s {0.__class__}'),
]

ATTRIBUTES = """
{{ ''.__class__.__mro__[1].__subclasses__() }}
{{ ''|attr('__class__') }}
{{ ''['__class__'] }}
{{ '{0.__class__.__init__.__globals__}'.format(messages) }}
{{ '{x.__class__}'.format_map({'x': 1}) }}
{{ ('%s' % messages.__class__) }}
{{ '%(__class__)s' % messages }}
{{ self.__init__.__globals__ }}
{{ cycler.__init__.__globals__.os.system('true') }}
{{ lipsum.__globals__ }}
{{ namespace.__init__.__globals__ }}
{{ joiner.__init__.__globals__ }}
{{ raise_exception.__globals__ }}
{{ strftime_now.__globals__ }}
{{ strftime_now('%9999999999d') }}
{{ strftime_now('%d' * 100000) }}
{% macro m() %}{{ caller }}{% endmacro %}{{ m._func.__globals__ }}{{ m.name }}{{ m.arguments }}
{{ (messages|map('upper')).gi_frame.f_globals }}
{{ (messages|map(attribute='__class__')|list) }}
{{ messages|map('attr', '__class__')|list }}
{{ messages|map(attribute='content.__class__')|list }}
{{ messages|groupby('__class__')|list }}
{{ messages.append(1) }}
{{ messages[0].update(a=1) }}
{{ (1).to_bytes(10000000000, 'big') }}
{{ dict(a=1).__init__ }}
{{ [].__reduce__() }}
{{ loop }}{% for x in messages %}{{ loop._iterator.gi_frame }}{% endfor %}
{% include 'x' %}
{% import 'x' as x %}
{% from 'x' import y %}
{% extends 'x' %}
{% autoescape true %}{{ '<' }}{% endautoescape %}
"""

SIZES = """
{{ 'a' * 10**12 }}
{{ 'a' * 100000000000 }}
{{ '%99999999999d' % 1 }}
{{ '%*d' % (1000000000, 1) }}
{{ '%9999999999d'|format(1) }}
{{ '{:>10000000000}'.format(1) }}
{{ '{:{}}'.format(1, 10000000000) }}
{{ 'a'|center(10000000000) }}
{{ 'a'.zfill(10000000000) }}
{{ '\\t'.expandtabs(10000000000) }}
{{ 'a'.ljust(10000000000) }}
{{ 'a\\nb'|indent(10000000000) }}
{{ ('a\\n' * 4000000)|indent(1000) }}
{{ 'a b c'|wordwrap(1) }}
{{ messages|batch(10000000000, 'x')|list }}
{{ messages|slice(10000000000)|list }}
{{ messages|tojson(indent=10000000000) }}
{{ messages|tojson(separators=('a' * 1000000, 'b' * 1000000)) }}
{{ messages|tojson(indent='a' * 8000000) }}
{{ 1.5|round(10000000000, 'ceil') }}
{{ ('a' * 8000000).replace('', 'b' * 8000000) }}
{{ ('a' * 8000000)|replace('a', 'b' * 8000000) }}
{{ ('b' * 8000000).join('a' * 8000000) }}
{{ ('a' * 8000000)|join('b' * 8000000) }}
{{ ('a ' * 4000000).split() }}
{{ ('a' * 8000000)|list|sort|unique|list|length }}
{{ ('<' * 8000000)|escape|escape|escape|length }}
{{ ('<b' * 4000000)|striptags }}
{{ ('http://a.b ' * 700000)|urlize }}
{{ ('a' * 8000000)|wordcount }}
{{ ('%s' * 4000000) % 'x' }}
{{ ('%(a)s' * 1000000) % {'a': 'b' * 8000000} }}
{{ ('{0}' * 2000000).format('b' * 8000000) }}
{{ lipsum(1000000000) }}
{{ 9**9**9 }}
{{ 10 ** 100000000 }}
{{ range(10**9)|list }}
{{ range(1000000000) }}
{{ [messages] * 100000000 }}
{{ range(99999)|map('string')|sum(start='') }}
{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}
{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}
{% set ns = namespace(s='ab') %}{% for a in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}
{% set ns = namespace(s='ab') %}{% for a in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}
{% set ns = namespace(s=12345) %}{% for a in range(60) %}{% set ns.s = ns.s * ns.s %}{% endfor %}{{ ns.s }}
{% set ns = namespace(l=[1]) %}{% for a in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}
{% set ns = namespace(l=[1]) %}{% for a in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l|tojson }}
{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}
{% set ns = namespace() %}{% set ns.a = [ns, ns] %}{{ ns.a }}{{ ns.a|tojson }}
{% set a = namespace() %}{% set b = namespace(x=a, y=a) %}{% set c = namespace(x=b, y=b) %}{{ c }}
{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}
{% macro m(n) %}{% for i in range(99999) %}{{ 'x' * 8000000 }}{% endfor %}{% endmacro %}{{ m(1)|length }}
{% set x %}{% for i in range(99999) %}{{ 'x' * 8000000 }}{% endfor %}{% endset %}
{% filter upper %}{% for i in range(99999) %}{{ 'x' * 8000000 }}{% endfor %}{% endfilter %}
{% block b %}{% for i in range(99999) %}{{ 'x' * 80000 }}{% endfor %}{% endblock %}{{ self.b()|length }}
{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}
{% for x in [1, 2] recursive %}{% if loop.depth < 50 %}{{ loop([1, 2]) }}{% endif %}{% endfor %}
{% for x in range(99999) if x|string in ('1' * 8000000) %}{% endfor %}
{% for x in range(9999) %}{% set y = ('ab' * 4000000)|replace('a', 'b') %}{% endfor %}
{% for x in messages %}{% for y in ('x' * 8000000) %}{{ y }}{% endfor %}{% endfor %}
{{ '%0999999999d' is odd }}
{{ ['%0999999999d']|select('even')|list }}
{{ '%(a)0999999999d' is divisibleby({'a': 1}) }}
{{ '{0[}]:{1}}'.format({'}': 1}, 999999999) }}
{{ ('%(a)9999d' * 40000) % {'a': 1} }}
{{ ('{0:>9999}' * 40000).format(1) }}
{{ ('Ā' * 8000000)|list|length }}
{{ ('Ā' * 8000000)|join|length }}
{{ ''.join('Ā' * 8000000)|length }}
{{ ('Ā-' * 4000000)|title|length }}
{{ ('Ā\\n' * 4000000)|indent(1)|length }}
{% macro m() %}{% endmacro %}{{ m(*('Ā' * 8000000)) }}
{{ ('\\t' * 8000000).expandtabs(9999) }}
{{ '\\t'.expandtabs(tabsize=999999999) }}
{{ [[[[(range(90000)|list)]]]]|tojson(indent=10000)|length }}
{{ ('a' * 8000000).rfind('ab' + 'a' * 4000000) }}
{{ ('a' * 8000000).strip('b' * 8000000 + 'a') }}
{{ ('a' * 8000000)|trim('b' * 8000000 + 'a') }}
{{ dict(range(0, 90000 * 2305843009213693951, 2305843009213693951)|groupby(none))|length }}
{% set q = dict.update(messages[0], {'content': 1}) %}
{{ {'a': 1}.keys().mapping }}
"""

# What Python walks over in one step where it stands twice in each of sixty lists.
_TWICE = """
{{ ns.l }}
{{ ns.l|tojson }}
{{ ns.l == ns.m }}
{{ ns.l is eq ns.m }}
{{ {ns.l: 1} }}
{{ messages[0][ns.l] }}
{{ 'x' ~ ns.l }}
{{ '%s' % (ns.l,) }}
{{ '{}'.format(ns.l) }}
{{ ''.join(ns.l) }}
{{ raise_exception(ns.l) }}
{{ ns.l is upper }}
{{ ns.l is lower }}
{{ ns.l is filter }}
{{ ns.l is test }}
{{ {1: 1}.keys() - [ns.l] }}
{{ ns.l in {1: 1}.keys() }}
{% set q = namespace([[ns.l, 1]]) %}
{{ [ns.l].index(ns.m) }}
"""
_SIXTY = (
    "{% set ns = namespace(l=(1,), m=(1,)) %}{% for a in range(60) %}"
    "{% set ns.l = (ns.l, ns.l) %}{% set ns.m = (ns.m, ns.m) %}{% endfor %}"
)
_HOSTILE = [
    *(line for text in (ATTRIBUTES, SIZES) for line in text.strip().splitlines()),
    *(_SIXTY + line for line in _TWICE.strip().splitlines()),
]

WELL = [
    GEMMA,
    LLAMA3,
    PHI3,
    QWEN3_THINKING,
    "{% for m in messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list %}"
    "{{ loop.index0 ~ ': ' ~ m.strip().split('\\n')[-1]|trim|tojson(indent=2) }}"
    "{% generation %}{{ '%s-%03d' % (m, 5) }}{% endgeneration %}{% break %}{% endfor %}"
    "{{ strftime_now('%Y') }}",
    "{% set ns = namespace(first=true) %}{% macro f(x, y=[]) %}{{ x|default('n', true) }}{% endmacro %}"
    "{{ f('a') ~ (messages|length) ~ messages[1:]|length ~ messages[-1]['content'][:3]|replace('a', 'b') }}"
    "{{ dict(a=1)|dictsort|list ~ {'k': 1}.items()|list ~ messages|last|items|list }}",
]


def seeds(folder: Path) -> list[bytes]:
    """Templates of models, and one for each way out or to the machine's limits that is known."""
    long = ["{{ a }}" * 14_000, "{{ " + "(" * 30_000, "{{ " + "-" * 30_000 + "1 }}", "{% if a %}" * 9_000]
    long += [
        "{{ " + "[" * 500 + "]" * 500 + " }}",
        "{#" * 40_000,
        "{%-" + " " * 90_000,
        "{{ " + "1_" * 40_000,
    ]
    long += [
        "{{ 'a'" + "|upper" * 9_000 + " }}",
        "{{ a" + ".b" * 40_000 + " }}",
        "{{ " + "9" * 90_000 + " }}",
    ]
    long += ["{{ " + "a~" * 10_000 + "a }}", "{% raw %}" * 9_000, "{{ '" + "\\u0041" * 10_000 + "' }}"]
    return [text.encode() for text in [*WELL, *_HOSTILE, *long]]


def check(data: bytes, folder: Path) -> None:
    """Render as the worker does for the model in a folder."""
    (folder / "chat_template.jinja").write_bytes(data)
    try:
        text = ChatTemplate.from_folder(folder, "<s>").render(CHAT)
    except DecdecError:
        return
    assert "<class '" not in text


def mutate(data: bytes, random: Random) -> bytes:
    """Bytes changed, or a piece of one template put into another."""
    if random.random() < 0.4:
        return mutate_bytes(data, random)
    other = random.choice(_HOSTILE).encode()
    at = data.find(b"}", random.randrange(len(data) + 1)) + 1
    return data[:at] + other + data[at:]
