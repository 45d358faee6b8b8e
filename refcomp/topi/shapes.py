"""Checks of operands, and arithmetic on extents, that several operators share.

An extent is a Python int if it is constant, else an expression. Each operator computes its output's
shape here, so that constant extents stay constants. Each check raises UserError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from refcomp.foundation.dtype import I32, I64, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.te.extents import Extent, require_tensor
from refcomp.te.tensor import DTypeLike, Tensor

Array = np.ndarray[Any, np.dtype[Any]]
# Two numbers of the spatial axes: down (along y) and across (along x).
Pair = Sequence[int]
_T = TypeVar("_T")


def require_float(data: Tensor, operator: str) -> None:
    """Raise UserError if an operand is not a tensor of floats."""
    require_tensor(data, operator)
    if not data.dtype.is_float:
        raise UserError(
            f"{operator} takes float tensors, not {data.dtype}",
            remedy='convert it by a compute: x[i, j].astype("float32")',
            earlier=[data.declaration()],
        )


def require_number(data: Tensor, operator: str) -> None:
    """Raise UserError if an operand is not a tensor of floats or integers."""
    require_tensor(data, operator)
    if data.dtype.is_bool:
        raise UserError(
            f"{operator} takes numbers, not {data.dtype}",
            remedy='convert it by a compute: x[i].astype("int32")',
            earlier=[data.declaration()],
        )


def require_integer(data: Tensor, operator: str) -> None:
    """Raise UserError if an operand is not a tensor of integers."""
    require_tensor(data, operator)
    if not data.dtype.is_int:
        raise UserError(
            f"{operator} takes integer tensors, not {data.dtype}",
            remedy='convert it by a compute: x[i].astype("int32")',
            earlier=[data.declaration()],
        )


def require_bool(data: Tensor, operator: str) -> None:
    """Raise UserError if an operand is not a tensor of bool."""
    require_tensor(data, operator)
    if not data.dtype.is_bool:
        raise UserError(
            f"{operator} takes a tensor of bool, not {data.dtype}",
            remedy="compare the elements first",
            earlier=[data.declaration()],
        )


def require_one_dtype(operator: str, first: Tensor, *others: Tensor | None) -> None:
    """Raise UserError if an operand is not a tensor, or has another dtype than the first one.

    None stands for an operand that is left out.
    """
    for other in others:
        if other is None:
            continue
        require_tensor(other, operator)
        if other.dtype != first.dtype:
            raise UserError(
                f"{operator} cannot combine {first.dtype} with {other.dtype}",
                why="topi does not convert operands automatically",
                remedy="convert one by a compute: x[i, j].astype(dtype)",
                earlier=[first.declaration(), other.declaration()],
            )


def require_index_dtype(dtype: DTypeLike, operator: str) -> None:
    """Raise UserError if `dtype` is not int32 or int64."""
    if as_dtype(dtype) not in (I32, I64):
        raise UserError(
            f"{operator} cannot give positions of the dtype {as_dtype(dtype)}",
            remedy='use "int32" or "int64"',
        )


def check_pair(value: Pair, operator: str, what: str) -> tuple[int, int]:
    """Return `value` as two ints. Raise UserError unless it is two numbers >= 1."""
    if len(value) != 2 or any(v < 1 for v in value):
        raise UserError(
            f"{operator} cannot have the {what} {tuple(value)}",
            remedy="give two numbers >= 1: down and across",
        )
    return value[0], value[1]


def require_constant(extent: Extent, what: str) -> int:
    """Return the extent as an int, or raise UserError if it is symbolic."""
    if isinstance(extent, int):
        return extent
    raise UserError(
        f"{what} must be a constant",
        why="loops and memory are laid out when the program is compiled",
        remedy="declare the tensor with a number in place of the symbol",
    )


def require_rank(tensor: Tensor, rank: int, operator: str, what: str) -> None:
    """Raise UserError if an operand is not a tensor of this rank."""
    require_tensor(tensor, operator)
    if tensor.ndim != rank:
        raise UserError(
            f"{operator}: {what} has {tensor.ndim} dimensions instead of {rank}",
            remedy="reshape or expand it first",
            earlier=[tensor.declaration()],
        )


def require_matrices(data: Tensor, operator: str) -> None:
    """Raise UserError if an operand is not a tensor with axes of rows and of columns."""
    require_tensor(data, operator)
    if data.ndim < 2:
        raise UserError(
            f"{operator} takes matrices, not a tensor of {data.ndim} dimensions",
            remedy="give a tensor with axes of rows and of columns",
            earlier=[data.declaration()],
        )


def product(factors: Sequence[Extent]) -> Extent:
    """Return the product of extents, with one constant factor, which stands last."""
    constant = 1
    result = None
    for factor in factors:
        if isinstance(factor, int):
            constant *= factor
        else:
            result = factor if result is None else result * factor
    if result is None or constant == 0:
        return constant
    return result if constant == 1 else result * constant


def window_extent(
    size: Extent, kernel: int, stride: int, dilation: int, before: int, after: int
) -> Extent:
    """Return the number of windows along one axis.

        floor((size + before + after - dilation * (kernel - 1) - 1) / stride) + 1

    Reference: the ONNX specification of Conv, and of MaxPool with ceil_mode = 0.

    Args:
        size: elements along the axis, without padding.
        kernel: elements of a window.
        stride: elements from one window to the next.
        dilation: elements from one element of a window to the next.
        before: padding before the first element.
        after: padding after the last element.

    Raises:
        UserError: `size` is constant and less than a window, padding included.
    """
    window = dilation * (kernel - 1) + 1
    last_start = before + after - window
    if isinstance(size, int):
        if size + last_start < 0:
            raise UserError(
                f"a window of {window} does not fit in {size} elements "
                f"with {before} + {after} of padding",
                remedy="use a smaller kernel or dilation, or more padding",
            )
        return (size + last_start) // stride + 1
    # Padding that keeps the extent keeps the symbol, so that later operators see equal extents.
    if stride == 1 and last_start == -1:
        return size
    shifted = size + last_start
    return (shifted if stride == 1 else shifted // stride) + 1


def replace_entry(entries: Sequence[_T], place: int, entry: _T) -> tuple[_T, ...]:
    """Return an index or a shape with another entry at `place`."""
    return (*entries[:place], entry, *entries[place + 1 :])


def normalize_axis(axis: int, rank: int, operator: str) -> int:
    """Return `axis`, which may be negative, counted from 0.

    Raises:
        UserError: the axis is not one of -rank, ..., rank - 1.
    """
    if not isinstance(axis, int | np.integer):
        raise UserError(
            f"{operator}: axis {axis!r} is not a number", remedy="use an int"
        )
    if not -rank <= axis < rank:
        raise UserError(
            f"{operator}: axis {axis} is out of range for {rank} dimensions",
            remedy=f"use {-rank} to {rank - 1}" if rank else "give a tensor with axes",
        )
    return axis % rank


def widen(array: Array) -> Array:
    """Return a float array as f64, so that a numpy meaning rounds once, and others unchanged."""
    return array.astype(np.float64) if as_dtype(array.dtype).is_float else array


def round_once(function: Callable[..., Any], *arrays: Array) -> Array:
    """Return a function of arrays, evaluated in f64 for floats, in the dtype of the first array."""
    with np.errstate(all="ignore"):
        result = function(*(widen(array) for array in arrays))
        return np.asarray(result, arrays[0].dtype)
