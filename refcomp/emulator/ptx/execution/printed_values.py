"""Values as C's printf prints them.

Source: ISO/IEC 9899:2018 (C17), section 7.21.6.1, "The fprintf function".
"""

from __future__ import annotations

from dataclasses import dataclass

# Limit of a width and of a precision. C has none, but the text of each thread is kept here.
_MAX_DIGITS = 1 << 12
_BASES = {"o": "o", "x": "x", "X": "X"}


@dataclass(frozen=True, slots=True)
class PrintFormat:
    """A format such as `%-8.3f`, with the values of its asterisks.

    Attributes:
        flags: the characters of "-+ #0" that the format has.
        width: the least number of characters. A negative width has the flag "-", too.
        precision: the number of digits or characters; None or negative: not given.
        kind: the letter at the end of the format.
    """

    flags: str
    width: int
    precision: int | None
    kind: str

    def text(self, value: int | float | str) -> str:
        """Return a value as text.

        Args:
            value: an int for "diouxXpc", a float for "eEfFgGaA", a str for "s".
        """
        precision = self.precision
        if precision is not None:
            precision = None if precision < 0 else min(precision, _MAX_DIGITS)
        if isinstance(value, str):
            return self._padded("", value[:precision])
        if self.kind == "c":
            return self._padded("", chr(int(value) & 0xFF))
        if self.kind == "p":
            return self._padded("", f"{value:#x}")
        if isinstance(value, float):
            return self._of_float(value, precision)
        return self._of_integer(value, precision)

    def _of_float(self, value: float, precision: int | None) -> str:
        is_finite = value - value == 0
        if self.kind in "aA":
            digits = abs(value).hex()
        else:
            form = "#" if "#" in self.flags else ""
            form += "" if precision is None else f".{precision}"
            digits = f"%{form}{self.kind}" % abs(value)
        if self.kind.isupper():
            digits = digits.upper()
        is_negative = str(value).startswith("-")
        return self._padded(self._sign(is_negative), digits, may_fill=is_finite)

    def _of_integer(self, value: int, precision: int | None) -> str:
        digits = format(abs(value), _BASES.get(self.kind, "d"))
        digits = digits.rjust(precision or 0, "0")
        if precision == 0 and not value:
            digits = ""
        sign = self._sign(value < 0) if self.kind in "di" else ""
        if "#" in self.flags and self.kind == "o" and not digits.startswith("0"):
            digits = "0" + digits
        if "#" in self.flags and self.kind in "xX" and value:
            sign = "0" + self.kind
        return self._padded(sign, digits, may_fill=precision is None)

    def _sign(self, is_negative: bool) -> str:
        if is_negative:
            return "-"
        return "+" if "+" in self.flags else " " if " " in self.flags else ""

    def _padded(self, sign: str, digits: str, *, may_fill: bool = False) -> str:
        """Fill up to the width: by zeros behind a sign or a prefix, or by spaces."""
        width = min(abs(self.width), _MAX_DIGITS)
        if "-" in self.flags or self.width < 0:
            return (sign + digits).ljust(width)
        if may_fill and "0" in self.flags:
            digits = digits.rjust(width - len(sign), "0")
        return (sign + digits).rjust(width)
