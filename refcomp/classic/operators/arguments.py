"""Conversion of classic arguments: sizes, padding, axes and numbers beside tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import SupportsInt, TypeVar

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.ir.expr import Expr, IntImm
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.movement.constants import full

Sizes = SupportsInt | Sequence[SupportsInt]
Operand = Tensor | Expr | float
_Choice = TypeVar("_Choice")


def sizes_of(values: Sequence[SupportsInt], what: str) -> tuple[int, ...]:
    """Return constant sizes as ints.

    Args:
        values: ints, or constants such as an extent of `x.shape`.
        what: the argument, for the message.

    Raises:
        UserError: a size is symbolic, or not a whole number; or `values` is not a list.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UserError(f"{what} is {values!r}", remedy="give a tuple of numbers")
    sizes = tuple(values)
    for size in sizes:
        if isinstance(size, Expr) and not isinstance(size, IntImm):
            raise UserError(
                f"{what} has the size {size}, which is not a constant",
                why="operators of topi take sizes as numbers",
                remedy="write a compute for a symbolic size",
            )
        is_whole = isinstance(size, Integral | IntImm)
        if not is_whole and not (isinstance(size, float) and size.is_integer()):
            raise UserError(
                f"{what} has the size {size!r}", remedy="give whole numbers"
            )
    return tuple(int(size) for size in sizes)


def size_of(value: SupportsInt, what: str) -> int:
    """Return a constant size as an int.

    Raises:
        UserError: the size is symbolic, or not a whole number.
    """
    return sizes_of([value], what)[0]


def lower_case(word: object, what: str) -> str:
    """Return a word in small letters.

    Raises:
        UserError: `word` is not a text.
    """
    if not isinstance(word, str):
        raise UserError(f"{what} is {word!r}", remedy="give a text")
    return word.lower()


def get_const_tuple(in_tuple: Sequence[SupportsInt]) -> tuple[int, ...]:
    """Return constant extents, such as `x.shape`, as ints. Refuse symbolic ones."""
    return sizes_of(in_tuple, "the tuple")


def get_const_int(expr: SupportsInt) -> int:
    """Return a constant as an int. Refuse an expression of variables."""
    return size_of(expr, "the expression")


def pair_of(value: Sizes, what: str) -> tuple[int, int]:
    """Return two numbers, for height and width. A single number stands for both.

    Raises:
        UserError: there are not one or two numbers.
    """
    numbers = sizes_of(_listed(value), what)
    if len(numbers) != 2:
        raise UserError(f"{what} is {numbers}", remedy="give one number, or two")
    down, across = numbers
    return down, across


def padding_of(padding: Sizes | str, window: tuple[int, int]) -> tuple[int, ...]:
    """Return elements at the top, left, bottom and right.

    Args:
        padding: one number for all sides, two for top and bottom and for left and right, or four.
            "VALID" stands for none. "SAME" keeps the extents at stride 1; if it adds an odd number,
            the greater half comes first.
        window: the extents of the window with its dilation, down and across.

    Raises:
        UserError: the padding is another text, or has another count of numbers.
    """
    if isinstance(padding, str):
        added = chosen(
            padding,
            {"VALID": (0, 0), "SAME": (window[0] - 1, window[1] - 1)},
            "the padding",
        )
        first = tuple((count + 1) // 2 for count in added)
        return *first, added[0] - first[0], added[1] - first[1]
    numbers = sizes_of(_listed(padding), "the padding")
    if len(numbers) not in (2, 4):
        raise UserError(
            f"the padding is {numbers}",
            remedy="give one number, two numbers, or four: top, left, bottom, right",
        )
    return numbers if len(numbers) == 4 else numbers * 2


def _listed(value: Sizes) -> Sequence[SupportsInt]:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return value if is_list else (value, value)  # type: ignore[return-value]


def window_of(extents: Sequence[Expr], dilation: tuple[int, int]) -> tuple[int, int]:
    """Return the extents of a window, down and across, with its dilation.

    Raises:
        UserError: an extent is symbolic, or the weights have too few axes.
    """
    height, width = pair_of(extents, "the window of the weights")
    return (height - 1) * dilation[0] + 1, (width - 1) * dilation[1] + 1


def get_pad_tuple(
    padding: Sizes | str, kernel: Sequence[SupportsInt]
) -> tuple[int, ...]:
    """Return elements at the top, left, bottom and right, for a window without dilation.

    Args:
        padding: one, two or four numbers, "VALID" or "SAME".
        kernel: the extents of the window, down and across.
    """
    return padding_of(padding, pair_of(kernel, "the window"))


def tensor_of(operand: Operand, like: Operand) -> Tensor:
    """Return a tensor as it is. Return a number as a tensor of rank 0, of the dtype of `like`."""
    if isinstance(operand, Tensor):
        return operand
    if isinstance(operand, Expr):
        return compute((), lambda: operand, name="scalar")
    dtype = like.dtype if isinstance(like, Tensor | Expr) else "float32"
    return full(shape=(), fill_value=operand, dtype=dtype)


def chosen(word: str, choices: dict[str, _Choice], what: str) -> _Choice:
    """Return the choice that a word names.

    Raises:
        UserError: the word is unknown.
    """
    if word not in choices:
        raise UserError(
            f"{what} is {word!r}",
            remedy=advise(word, choices, f"use {' or '.join(choices)}"),
        )
    return choices[word]
