"""Greedy suppression of boxes that overlap: the common part of the operators in nms.py.

The boxes of a line, such as those of a class, are visited from the best one on. A box is kept
unless it overlaps one that is kept already. Lines are independent, and are one parallel loop.

Reference: A. Neubeck and L. Van Gool, "Efficient non-maximum suppression", ICPR 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refcomp.ir import builder
from refcomp.ir.builder import BufferPointer
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths
from refcomp.te.externs import extern
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor

Corners = tuple[Expr, Expr, Expr, Expr]


@dataclass(frozen=True, slots=True)
class Suppression:
    """The lines of boxes, and the rules by which boxes are kept.

    Attributes:
        order: the numbers of the boxes of each line, best first: i32 of shape (lines, boxes).
        inputs: the tensors that the rules read.
        room: the most boxes that are kept of a line.
        is_candidate: takes the memory of `inputs`, a line, a place in the order and the number of
            the box there. Returns the condition that the box may be kept.
        suppresses: takes the memory of `inputs`, a line, the number of a kept box and that of a
            later one. Returns the condition that the later one is dropped.
    """

    order: Tensor
    inputs: tuple[Tensor, ...]
    room: int
    is_candidate: Callable[[Sequence[BufferPointer], Expr, Expr, Expr], Expr]
    suppresses: Callable[[Sequence[BufferPointer], Expr, Expr, Expr], Expr]

    def kept(self, name: str) -> tuple[Tensor, Tensor]:
        """Return the numbers of the kept boxes, best first, and how many each line keeps.

        Returns:
            An i32 tensor of shape (lines, room) that ends in zeros, and an i32 tensor of shape
            (lines,).
        """
        lines = self.order.shape[0]
        numbers, found = extern(
            [(lines, self.room), (lines,)],
            [self.order, *self.inputs],
            self._statement,
            name=name,
            dtype=["int32", "int32"],
        )
        # A copy, since the outputs of an extern are arguments of a function together or not at all.
        counts = compute((lines,), lambda i: found[i], name="counts", tag=INJECTIVE)
        return numbers, counts

    def _statement(self, ins: Sequence[BufferView], outs: Sequence[BufferView]) -> Stmt:
        ib = builder.create()
        order, *inputs = (ib.buffer_ptr(view) for view in ins)
        kept = ib.buffer_ptr(outs[0])
        counts = ib.buffer_ptr(outs[1])
        lines, boxes = self.order.shape
        with ib.for_range(0, lines, name="line", for_type="parallel") as line:
            count = ib.allocate("int32", 1, name="count", scope="local")
            is_kept = ib.allocate("int32", 1, name="is_kept", scope="local")
            count[0] = 0
            with ib.for_range(0, boxes, name="i") as i:
                box = ib.let("box", order[line, i].astype("int64"))
                candidate = self.is_candidate(inputs, line, i, box)
                has_room = count[0] < self.room
                is_kept[0] = maths.all(candidate, has_room).astype("int32")
                with (
                    ib.if_scope(is_kept[0] != 0),
                    ib.for_range(0, count[0], name="k") as k,
                ):
                    other = ib.let("other", kept[line, k].astype("int64"))
                    with ib.if_scope(self.suppresses(inputs, line, other, box)):
                        is_kept[0] = 0
                with ib.if_scope(is_kept[0] != 0):
                    kept[line, count[0]] = box
                    count[0] = count[0] + 1
            counts[line] = count[0]
            with ib.for_range(0, self.room, name="k") as k, ib.if_scope(k >= count[0]):
                kept[line, k] = 0
        return ib.get()


def corners_of(first: Expr, second: Expr, third: Expr, fourth: Expr) -> Corners:
    """Return the low and the high coordinates of a box between any two opposite corners."""
    return (
        maths.minimum(first, third),
        maths.minimum(second, fourth),
        maths.maximum(first, third),
        maths.maximum(second, fourth),
    )


def centered_corners(x: Expr, y: Expr, width: Expr, height: Expr) -> Corners:
    """Return the low and the high coordinates of a box around a centre."""
    half_width = width * const(0.5, width.dtype)
    half_height = height * const(0.5, height.dtype)
    return (x - half_width, y - half_height, x + half_width, y + half_height)


def overlaps_more(a: Corners, b: Corners, threshold: float) -> Expr:
    """Return the condition that intersection over union is greater than a threshold.

    It is false for NaN, and for boxes without an area.
    """
    zero = const(0, a[0].dtype)
    height = maths.maximum(maths.minimum(a[2], b[2]) - maths.maximum(a[0], b[0]), zero)
    width = maths.maximum(maths.minimum(a[3], b[3]) - maths.maximum(a[1], b[1]), zero)
    shared_area = height * width
    union = _area(a) + _area(b) - shared_area
    return shared_area / union > const(threshold, shared_area.dtype)


def _area(box: Corners) -> Expr:
    return (box[2] - box[0]) * (box[3] - box[1])
