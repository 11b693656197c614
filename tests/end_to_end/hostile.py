"""Text that would drive a terminal, and what a terminal shows that it was driven."""

import re

# Title, clipboard, cursor, colours, other screen, reset, device control, 8-bit forms, bells, order of text,
# marks without end, and markup of the library that draws.
EVIL = (
    "A\x1b]0;PWNED\x07B\x1b]2;PWNED\x1b\\C\x1b]52;c;UFdORUQ=\x07D\x1b[6;66HE\x1b[38;2;1;2;3mF\x1b[?1049lG\x1bcH"
    "\x1bPqPWNED\x1b\\I\x9b2JJ\x9d0;PWNED\x9cK\x90q\x9cL\x07\x08M\x0e\x0f\x00N\u202egnp.exe\u2066O\u2028P\x7f"
    "Q\x1b]8;;file:///etc/passwd\x1b\\R\x1b]8;;\x1b\\S\x1b_PWNED\x1b\\T\x1b^PWNED\x1b\\U" + "\u0301" * 2_000
    + "V\u200b[@click=app.quit]W[/][link=file:///x]X[/link][red]Y[/red]\x1b[31"
)  # fmt: skip
# Where a line is all there is.
EVIL_LINE = EVIL.replace("\x00", "")
_ONLY_OURS = (
    b"\x1b]0;", b"\x1b]2;", b"\x1b]52;c;UFd", b"\x1b]8;", b"\x1b[6;66H", b"\x1b[38;2;1;2;3m", b"\x1bc",
    b"\x1bPq", b"\x1b_", b"\x1b^", b"\x07", b"\x08", b"\x0e", b"\x0f", b"\x00", b"\x7f",
)  # fmt: skip
_UNSEEN = re.compile("[\x80-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|\u0301{31}")


# Textual tells the shape of the pointer by a sequence that ends in a bell, which pyte takes for a title.
_POINTER = re.compile(rb"\x1b\]22;[a-z-]*\x07")


def driven(output, screen):
    """What of the hostile text got through, by the bytes and by the emulator's state; empty: nothing."""
    output = _POINTER.sub(b"", output)
    found = [each for each in _ONLY_OURS if each in output]
    found += _UNSEEN.findall(output.decode("utf-8", "surrogateescape"))
    found += [state for state in (screen.title, screen.icon_name) if "PWNED" in state]
    return found
