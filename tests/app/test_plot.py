"""Curves in braille dots: known characters at known places."""

import pytest

from app.plot import Axis, Canvas, Plot


def text(canvas):
    return ["".join(char for char, _ in row) for row in canvas.cells()]


def test_a_dot_is_where_unicode_says():
    """U+2800 and bits 1 2 3 7 down the left column, 4 5 6 8 down the right one."""
    for y, left, right in ((3, 0x01, 0x08), (2, 0x02, 0x10), (1, 0x04, 0x20), (0, 0x40, 0x80)):
        for x, bit in ((0, left), (1, right)):
            canvas = Canvas(1, 1)
            canvas.dot(x, y, "a")
            assert text(canvas) == [chr(0x2800 + bit)]


def test_lines_and_what_lies_outside():
    canvas = Canvas(2, 2)
    canvas.line((0, 0), (3, 0), "low")
    canvas.line((0, 0), (0, 9), "left")
    canvas.dot(-1, 3, "lost")
    canvas.dot(4, 3, "lost")
    assert text(canvas) == ["⡇ ", "⣇⣀"]
    assert canvas.cells()[1] == [("⣇", "left"), ("⣀", "low")]


@pytest.mark.parametrize(
    ("axis", "value", "dot"),
    [
        (Axis(0, 10), 0, 0),
        (Axis(0, 10), 10, 9),
        (Axis(0, 10), 5, 4),
        (Axis(0, 1023, True), 1023, 9),
        (Axis(0, 1023, True), 31, 4),
        (Axis(0, 1023, True), 0, 0),
    ],
)
def test_axes(axis, value, dot):
    assert axis.place(value, 10) == dot


def test_an_axis_around_one_value_has_it_in_the_middle():
    assert Axis.around([3.0]).place(3.0, 11) == 5
    assert Axis.around([]).place(0.5, 11) == 5
    assert Axis.around([1, 5, 3]) == Axis(1, 5)


def test_a_curve_rises_from_corner_to_corner():
    plot = Plot(Canvas(2, 1), Axis(0, 3), Axis(0, 3))
    plot.curve([(0, 0), (3, 3)], "curve")
    assert text(plot.canvas) == ["⡠⠊"]


def test_a_single_point_is_a_dot():
    plot = Plot(Canvas(1, 1), Axis(0, 1), Axis(0, 1))
    plot.curve([(0, 0)], "curve")
    assert text(plot.canvas) == ["⡀"]


def test_steps_hold_until_the_next_point_and_to_the_end():
    plot = Plot(Canvas(2, 1), Axis(0, 3), Axis(0, 3))
    plot.steps([(0, 0), (2, 3)], "steps")
    assert text(plot.canvas) == ["⣀⡏"]
    plot.steps([], "nothing")


def test_dotted_lines():
    plot = Plot(Canvas(3, 1), Axis(0, 5), Axis(0, 3))
    plot.level(0, "base")
    assert text(plot.canvas) == ["⡀⢀ "]
    plot = Plot(Canvas(1, 2), Axis(0, 1), Axis(0, 7))
    plot.upright(0, "knee")
    assert text(plot.canvas) == ["⡂", "⡂"]
