"""Operators of two tensors that work element by element, with numpy's broadcasting.

Both operands have one dtype, which is the result's too. Extents are matched from the last; the
constant extent 1 is repeated, a symbolic one never is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import Array, broadcast_extents, extents, require_tensor
from refcomp.topi.tags import INJECTIVE


def read_broadcast(tensor: Tensor, index: tuple[Expr, ...]) -> Expr:
    """The element of `tensor` that broadcasting puts at `index` of the result."""
    own = index[len(index) - tensor.ndim :]
    sizes = extents(tensor)
    return tensor[
        tuple(0 if size == 1 else i for i, size in zip(own, sizes, strict=True))
    ]


def combine_elements(
    a: Tensor, b: Tensor, function: Callable[[Expr, Expr], Any], name: str
) -> Tensor:
    """The tensor of function(element of a, element of b), broadcast; UserError for two dtypes."""
    require_tensor(a, name)
    require_tensor(b, name)
    if a.dtype != b.dtype:
        raise UserError(f"{name}: the operands have dtypes {a.dtype} and {b.dtype}")
    shape = broadcast_extents(extents(a), extents(b), name)

    def element(*index: Expr) -> Any:
        return function(read_broadcast(a, index), read_broadcast(b, index))

    result: Tensor = compute(shape, element, name=name, tag=INJECTIVE)
    return result


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b; integers wrap."""
    return combine_elements(a, b, lambda x, y: x + y, "add")


def add_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.add(a, b))


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """a - b; integers wrap."""
    return combine_elements(a, b, lambda x, y: x - y, "subtract")


def subtract_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.subtract(a, b))


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a * b; integers wrap."""
    return combine_elements(a, b, lambda x, y: x * y, "multiply")


def multiply_numpy(a: Array, b: Array) -> Array:
    return np.asarray(np.multiply(a, b))


def divide(a: Tensor, b: Tensor) -> Tensor:
    """a / b; integers truncate toward zero, and x / 0 is 0."""
    return combine_elements(a, b, maths.truncdiv, "divide")


def divide_numpy(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        if as_dtype(a.dtype).is_float:
            return np.asarray(np.divide(a, b))
        inexact = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
        return np.asarray(np.floor_divide(a, b) + inexact.astype(a.dtype))


def scale(data: Tensor, factor: float) -> Tensor:
    """Every element times `factor`, which is rounded to the dtype."""
    require_tensor(data, "scale")
    result: Tensor = compute(
        data.shape,
        lambda *index: data[index] * const(factor, data.dtype),
        name="scale",
        tag=INJECTIVE,
    )
    return result
