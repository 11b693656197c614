"""What one step of Python's interpreter would make or walk over, which no deadline can interrupt."""

from __future__ import annotations

import time

import pytest

from runtime.errors import DecdecError
from runtime.protocol import Message
from runtime.text.template import ChatTemplate

CHAT = [Message("user", "Hi")]
# Two texts of little memory that take a million characters each to write down, compare or hash.
NEST = (
    "{% set ns = namespace(x=('a',), y=('a',)) %}{% for i in range(17) %}"
    "{% set ns.x = (ns.x, ns.x) %}{% set ns.y = (ns.y, ns.y) %}{% endfor %}"
)
COLLIDING = "range(0, 5000 * 2305843009213693951, 2305843009213693951)"

WALKED = {
    "upper": "{{ ns.x is upper }}",
    "lower": "{{ [ns.x]|select('lower')|list }}",
    "filter": "{{ ns.x is filter }}",
    "test": "{{ ns.x is test }}",
    "keys less a list": "{{ ({1: 1}.keys() - [ns.x])|length }}",
    "items less a list": "{{ ({1: 1}.items() - [ns.x])|length }}",
    "keys compared": "{{ ns.x in {1: 1}.keys() }}",
    "disjoint keys": "{{ {1: 1}.keys().isdisjoint([ns.x]) }}",
    "namespace of pairs": "{% set q = namespace([[ns.x, 1]]) %}",
    "namespace of pairs, unpacked": "{% set q = namespace(*[[[ns.x, 1]]]) %}",
    "index": "{{ (ns.x, 1).index(1) }}",
    "count": "{{ [ns.x].count(1) }}",
}
MADE = {
    "odd": ("{{ '%09999999d' is odd }}", "only a number"),
    "even": ("{{ ['%09999999d']|reject('even')|list }}", "only a number"),
    "divisibleby": ("{{ '%(a)09999999d' is divisibleby({'a': 1}) }}", "only a number"),
    "a brace in brackets": ("{{ '{0[}]:{1}}'.format({'}': 1}, 9999999)|length }}", "is a value"),
    "a nested width": ("{{ '{:{}}'.format(1, 9999999) }}", "is a value"),
    "wide fields": ("{{ ('%(a)9999d' * 20000) % {'a': 1} }}", "formatted to too much"),
    "wide format": ("{{ ('{0:>9999}' * 20000).format(1) }}", "formatted to too much"),
    "list": ("{{ ('Ā' * 5000000)|list|length }}", "more than 384 MB"),
    "join": ("{{ ('Ā' * 5000000)|join|length }}", "more than 384 MB"),
    "join of a text": ("{{ ''.join('Ā' * 5000000)|length }}", "more than 384 MB"),
    "title": ("{{ ('Ā-' * 2500000)|title|length }}", "more than 384 MB"),
    "indent": ("{{ ('Ā\\n' * 2500000)|indent(1)|length }}", "more than 384 MB"),
    "unpacked": ("{% macro m() %}{% endmacro %}{{ m(*('Ā' * 5000000)) }}", "more than 384 MB"),
    "tabs": ("{{ ('\\t' * 10000).expandtabs(9999)|length }}", "tabs"),
    "tabs by name": ("{{ '\\t'.expandtabs(tabsize=9999999)|length }}", "width"),
    "wide tojson": ("{{ [1]|tojson(indent=65) }}", "indentation"),
    "deep tojson": (
        "{% set ns = namespace(x=range(9000)|list) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}"
        "{% endfor %}{{ ns.x|tojson(indent=64) }}",
        "too long",
    ),
    "long separators": ("{{ [1]|tojson(separators=(',' * 9, ':')) }}", "indentation"),
}
SEARCHED = {
    "rfind": "{{ ('a' * 40000).rfind('ab' + 'a' * 20000) }}",
    "rsplit": "{{ ('a' * 40000).rsplit(sep='ab' + 'a' * 20000)|length }}",
    "strip": "{{ ('a' * 2000).strip('b' * 2000000 + 'a') }}",
    "trim": "{{ ('a' * 2000)|trim(chars='b' * 2000000 + 'a') }}",
}
CHANGED = {
    "update": "{% set q = dict.update(messages[0], {'content': 1}) %}",
    "mapping": "{{ {'a': 1}.keys().mapping.a }}",
    "fromkeys": "{{ dict.fromkeys([1]) }}",
}


def refusal(source: str) -> str:
    template = ChatTemplate(source, {})
    started = time.monotonic()
    with pytest.raises(DecdecError) as caught:
        template.render(CHAT)
    assert time.monotonic() - started < 1.5
    return caught.value.sentence


@pytest.mark.parametrize("source", WALKED.values(), ids=WALKED.keys())
def test_what_is_walked_over_is_weighed_first(source):
    reason = refusal(NEST + source)
    assert "8 million" in reason or "unsafe" in reason


@pytest.mark.parametrize(("source", "reason"), MADE.values(), ids=MADE.keys())
def test_what_is_made_is_counted_first(source, reason):
    assert reason in refusal(source)


@pytest.mark.parametrize("source", SEARCHED.values(), ids=SEARCHED.keys())
def test_no_search_takes_the_product_of_two_long_texts(source):
    assert "looked for" in refusal(source)


@pytest.mark.parametrize("source", CHANGED.values(), ids=CHANGED.keys())
def test_no_way_to_change_or_hide_a_value(source):
    assert ChatTemplate("{{ messages[0].content }}", {}).render(CHAT) == "Hi"
    try:
        assert ChatTemplate(source, {}).render(CHAT) == ""
    except DecdecError as error:
        assert "unsafe" in error.sentence  # noqa: PT017 (one of two ways to say no)


@pytest.mark.parametrize("made", ["dict", "namespace"])
def test_no_dictionary_of_many_numbers_with_one_hash(made):
    assert "too many pairs" in refusal(f"{{% set q = {made}({COLLIDING}|groupby(none)) %}}")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ 3 is odd }}{{ 2 is even }}{{ 6.0 is divisibleby(3) }}", "TrueTrueTrue"),
        ("{{ 'A' is upper }}{{ 'trim' is filter }}{{ 'odd' is test }}", "TrueTrueTrue"),
        ("{{ ({1: 1, 2: 1}.keys() - [1])|list }}{{ 5 - 3 }}{{ -1.5 - 1 }}", "[2]2-2.5"),
        ("{% set a = namespace(n=1) %}{% set b = namespace(of=a) %}{{ b.of.n }}", "1"),
        ("{{ namespace({'a': 1}).a }}{{ namespace([['a', 2]]).a }}{{ dict([['a', 3]]).a }}", "123"),
        ("{{ '{:>3}{{{a[b]}}}'.format(1, a={'b': 2}) }}{{ '%3d' % 1 }}", "  1{2}  1"),
        ("{{ 'abc'|list }}{{ 'abc'|join('-') }}", "['a', 'b', 'c']a-b-c"),
        ("{% macro m(a, b) %}{{ a.n }}{{ b }}{% endmacro %}{{ m(*[namespace(n=1), 2]) }}", "12"),
        ("{{ {'a': [1, {}], 'b': []}|tojson(indent=1) }}", '{\n "a": [\n  1,\n  {}\n ],\n "b": []\n}'),
        ("{{ 'a\\tb'.expandtabs(4) }}{{ ' x '.strip() }}{{ 'a-b'.rsplit('-', 1) }}", "a   bx['a', 'b']"),
    ],
)
def test_the_harmless_forms_stay(source, text):
    assert ChatTemplate(source, {}).render(CHAT) == text
