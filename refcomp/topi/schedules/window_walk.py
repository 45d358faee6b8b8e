"""The walk of a sum along its depth: the beginnings of its steps in an image stored as one row.

The steps of a convolution run over the window and over parts of the channels. Between most of them,
the place in the image grows by the length of a part. Where the window's next pixel or next row
begins, it grows by more. The place is the same for all threads of a group, so counters and
conditions are scalar instructions. Divisions would be vector instructions, because LLVM narrows
them to 8 or 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.expr import Expr, Select
from refcomp.ir.promotion import const


@dataclass(frozen=True, slots=True)
class Digit:
    """A loop of the walk.

    Attributes:
        extent: the number of its iterations.
        stride: elements from one iteration to the next.
    """

    extent: int
    stride: int


class WindowWalk:
    """The place of a step, as numbers that the statements of a builder hold.

    Args:
        ib: the builder of the kernel, in which the numbers live to the end of the scope.
        digits: the loops, the outermost first.
        first: the number of the step at which the walk begins, an i64.

    Example::

        >>> from refcomp.ir.promotion import const
        >>> from refcomp.topi.schedules.window_walk import Digit, WindowWalk
        >>> ib = rc.ir_builder.create()
        >>> walk = WindowWalk(ib, [Digit(3, 100), Digit(2, 16)], const(0, "int64"))
        >>> walk.advance()
        >>> print(ib.get())
        alloc place: i64[1] local {
          alloc count: i32[1] local {
            count[0] = i32(truncmod(0, 2))
            place[0] = 0 + truncmod(0, 2) * 16 + 0 // 2 * 100
            let next: i32 = count[0] + 1i32 {
              count[0] = select(next == 2i32, 0i32, next)
              place[0] = place[0] + select(next == 2i32, 84, 16)
            }
          }
        }
    """

    def __init__(self, ib: IRBuilder, digits: Sequence[Digit], first: Expr) -> None:
        self._ib = ib
        self._digits = list(digits)
        self._place = ib.allocate("int64", (1,), "place", scope="local")
        counted = len(self._digits) - 1  # the outermost loop ends with the walk
        self._counts: BufferPointer | None = None
        if counted:
            self._counts = ib.allocate("int32", (counted,), "count", scope="local")
        place: Expr = const(0, "int64")
        for number in reversed(range(len(self._digits))):
            digit = self._digits[number]
            value = first % digit.extent if number else first
            first = first // digit.extent
            place = place + value * digit.stride
            if number and self._counts is not None:
                self._counts[number - 1] = value.astype("int32")
        self._place[0] = place

    @property
    def place(self) -> Expr:
        """Return the elements from the first step to this one."""
        return self._place[0]

    def advance(self) -> None:
        """Go to the next step."""
        *_, innermost = self._digits
        grown: Expr = const(innermost.stride, "int64")
        back = 0  # from the last iteration of the inner loops to the first
        has_ended: Expr | None = None
        for number in reversed(range(1, len(self._digits))):
            assert self._counts is not None
            digit = self._digits[number]
            count = self._counts[number - 1]
            one = const(1, "int32")
            if has_ended is not None:
                one = Select(has_ended, one, const(0, "int32"))
            count = self._ib.let("next", count + one)
            has_ended = count == const(digit.extent, "int32")
            self._counts[number - 1] = Select(has_ended, const(0, "int32"), count)
            back += (digit.extent - 1) * digit.stride
            jump = const(self._digits[number - 1].stride - back, "int64")
            grown = Select(has_ended, jump, grown)
        self._place[0] = self._place[0] + grown
