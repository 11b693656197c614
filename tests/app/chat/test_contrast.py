"""Text of the own themes can be read: WCAG 2 contrast of at least 4.5, by all rules of the stylesheets."""

import re
from pathlib import Path

import pytest
from textual.color import Color

from app.chat import themes
from app.chat.app import STYLES

THEMES = {theme.name: theme.to_color_system().generate() for theme in themes.load()}
# What is no text: rails, rules and steps that are still to come.
NO_TEXT = re.compile(r"rail\b|--rule|--later|scrollbar")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
READABLE = 4.5


def luminance(color):
    """As WCAG 2 defines it."""
    parts = [value / 255 for value in color.rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_known_contrasts():
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    assert contrast(white, black) == pytest.approx(21)
    assert contrast(Color.parse("#777777"), white) == pytest.approx(4.48, abs=0.01)
    assert contrast(Color.parse("#0000ff"), white) == pytest.approx(8.59, abs=0.01)


def resolved(text, variables, behind):
    """A colour of a stylesheet over a background, None where it has no colour of its own."""
    name, _, share = text.partition(" ")
    value = variables.get(name.removeprefix("$"), name)
    if value.startswith("auto"):
        color = behind.get_contrast_text(float(value.split()[1].rstrip("%")) / 100)
    elif value in ("transparent", "initial"):
        return None
    else:
        color = Color.parse(value)
    alpha = color.a * (float(share.rstrip("%")) / 100 if share else 1.0)
    return behind.blend(Color(*color.rgb), alpha, 1.0)


def rules():
    for path in sorted(Path(STYLES).glob("*.tcss")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for selector, body in RULE.findall(text):
            found = dict(re.findall(r"(?:^|[;\s])(color|background)\s*:\s*([^;]+)", body))
            if "color" in found and not NO_TEXT.search(selector):
                yield f"{path.name}: {' '.join(selector.split())}", found


@pytest.mark.parametrize("theme", sorted(THEMES))
def test_text_is_readable(theme):
    variables = THEMES[theme]
    grounds = [Color.parse(variables[name]) for name in ("background", "surface")]
    poor = []
    for where, found in rules():
        for ground in grounds:
            behind = resolved(found["background"], variables, ground) if "background" in found else ground
            color = resolved(found["color"], variables, behind or ground)
            if color is not None and contrast(color, behind or ground) < READABLE:
                poor.append(f"{where}: {contrast(color, behind or ground):.2f} on {(behind or ground).hex}")
    assert poor == []


@pytest.mark.parametrize("theme", sorted(THEMES))
def test_colours_with_a_meaning_are_readable_as_text(theme):
    variables = THEMES[theme]
    names = ("foreground", "primary", "secondary", "accent", "success", "warning", "error")
    for ground in ("background", "surface", "panel"):
        behind = Color.parse(variables[ground])
        for name in names:
            assert contrast(Color.parse(variables[name]), behind) >= READABLE, (name, ground)


def test_the_high_contrast_theme_has_twice_the_contrast_at_least():
    variables = THEMES["decdec-contrast"]
    behind = Color.parse(variables["surface"])
    for name in ("foreground", "primary", "secondary", "accent", "success", "warning", "error"):
        assert contrast(Color.parse(variables[name]), behind) >= 7.0
