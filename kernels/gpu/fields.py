"""Where the bits of a weight lie inside a lane's words, for every plane width; shared by packer and decoders.

A lane holds 32 weights of a step as 8 registers of 4 bytes, one code a byte. A plane of width b keeps them
in b words: byte i of word w has 8 bits for the codes of byte i. Every code is one or a few runs of bits in
these bytes, so that a word is decoded by shifts and masks, four codes at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

LANES = 32
REGISTERS = 8
STEP_COLUMNS = 128
GROUP_ROWS = 8
WIDTHS = (2, 3, 4, 5, 6, 7, 8)
SHORT_BITS = (2, 3, 4, 5)
LISTED_BITS = (2, 3, 4)
# The bytes of weights with short codes, up to 2^width + 2^(short_bits-1), must stay inside a signed byte.
WIDEST_SHORT = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits `source`.. of a register's codes lie at bit `target`.. of each byte of word `word`."""

    register: int
    source: int
    word: int
    target: int
    count: int


@dataclass(frozen=True, slots=True, order=True)
class Form:
    """How a group of 8 rows is coded: a plane of `width` bits a weight, and how values outside it are kept.

    Plain (`short_bits` 0): the plane has the two's complement range of its width, all else is patched.
    Escaped: the plane has |q| <= m = 2^(width-1) - 1, and an escape code for up to 2^(short_bits-1) values
    more on either side, told apart by a code of `short_bits`. Listed: the plane has its full range, and as
    many values more are listed, one byte each: the distance from the one before, and a code of
    `short_bits`.
    """

    width: int
    short_bits: int = 0
    listed: bool = False

    def __post_init__(self) -> None:
        if self.width not in WIDTHS or self.short_bits not in (0, *SHORT_BITS):
            raise ValueError(f"no plane has {self.width} bits with {self.short_bits}-bit codes")
        if self.short_bits and self.width > WIDEST_SHORT:
            raise ValueError(f"planes of {self.width} bits have no short codes")
        if self.listed and self.short_bits not in LISTED_BITS:
            raise ValueError(f"lists do not have codes of {self.short_bits} bits")

    @property
    def escaped(self) -> bool:
        """Whether the plane has an escape code."""
        return self.short_bits > 0 and not self.listed

    @property
    def dense_highest(self) -> int:
        """Largest value with a code of its own in the plane."""
        return (1 << (self.width - 1)) - 1

    @property
    def dense_lowest(self) -> int:
        """Smallest value with a code of its own in the plane."""
        return -self.dense_highest if self.escaped else -self.dense_highest - 1

    @property
    def reach(self) -> int:
        """How many values beyond the plane's have short codes, on either side."""
        return 1 << (self.short_bits - 1) if self.short_bits else 0

    @property
    def lowest(self) -> int:
        """Smallest value that needs no patch."""
        return self.dense_lowest - self.reach

    @property
    def highest(self) -> int:
        """Largest value that needs no patch."""
        return self.dense_highest + self.reach

    @property
    def offset(self) -> int:
        """What a plane's unsigned codes exceed the weights by."""
        return 0 if self.width == 8 else -self.dense_lowest

    @property
    def farthest(self) -> int:
        """The distance field of a list's byte that means: go on so far, and nothing is here."""
        return (1 << (8 - self.short_bits)) - 1

    @property
    def key(self) -> int:
        """The form as the kernels read it."""
        return self.width | self.short_bits << 4 | self.listed << 8


def form_of_key(key: int) -> Form:
    """Inverse of `Form.key`."""
    return Form(key & 15, key >> 4 & 15, bool(key >> 8))


ALL_FORMS = tuple(
    [Form(width) for width in WIDTHS]
    + [Form(width, bits) for width in WIDTHS if width <= WIDEST_SHORT for bits in SHORT_BITS if bits > 2]
    + [Form(width, bits, True) for width in WIDTHS if width <= WIDEST_SHORT for bits in LISTED_BITS]
)


def _direct(width: int, registers: int) -> list[Piece]:
    return [Piece(r, 0, r, 0, width) for r in range(registers)]


def _pairs(register: int, first_word: int, source: int = 0, count: int = 3) -> list[Piece]:
    return [Piece(register, source + 2 * j, first_word + j, 6, 2) for j in range(count)]


def _width3() -> list[Piece]:
    direct = [Piece(r, 0, r // 2, 3 * (r % 2), 3) for r in range(6)]
    # Six bits, register 6 below register 7, two in each word.
    spare = [
        Piece(6, 0, 0, 6, 2), Piece(6, 2, 1, 6, 1), Piece(7, 0, 1, 7, 1), Piece(7, 1, 2, 6, 2)
    ]  # fmt: skip
    return direct + spare


def _width5() -> list[Piece]:
    low = [Piece(5 + j, 0, 2 * j, 5, 3) for j in range(3)]
    high = [Piece(5, 3, 1, 5, 2), Piece(6, 3, 3, 5, 2), Piece(7, 3, 1, 7, 1), Piece(7, 4, 3, 7, 1)]
    return _direct(5, 5) + low + high


PIECES: dict[int, tuple[Piece, ...]] = {
    2: tuple(Piece(r, 0, r // 4, 2 * (r % 4), 2) for r in range(8)),
    3: tuple(_width3()),
    4: tuple(Piece(r, 0, r // 2, 4 * (r % 2), 4) for r in range(8)),
    5: tuple(_width5()),
    6: tuple(_direct(6, 6) + _pairs(6, 0) + _pairs(7, 3)),
    7: tuple(_direct(7, 7) + [Piece(7, j, j, 7, 1) for j in range(7)]),
    8: tuple(_direct(8, 8)),
}
