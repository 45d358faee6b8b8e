"""Operators of one tensor that work element by element.

Each `x(data) -> Tensor` keeps shape and dtype; `x_numpy` beside it is what it means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import Array, require_tensor, widen
from refcomp.topi.tags import INJECTIVE


def map_elements(data: Tensor, function: Callable[[Expr], Any], name: str) -> Tensor:
    """The tensor of function(element) for each element of `data`."""
    require_tensor(data, name)
    result: Tensor = compute(
        data.shape, lambda *index: function(data[index]), name=name, tag=INJECTIVE
    )
    return result


def _require_float(data: Tensor, operator: str) -> None:
    require_tensor(data, operator)
    if not data.dtype.is_float:
        raise UserError(f"{operator} takes a float tensor, {data.dtype} given")


def relu(data: Tensor) -> Tensor:
    """max(x, 0); NaN stays NaN."""
    return map_elements(data, lambda x: maths.maximum(x, const(0, data.dtype)), "relu")


def relu_numpy(data: Array) -> Array:
    return np.asarray(np.maximum(data, data.dtype.type(0)))


def sigmoid(data: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    _require_float(data, "sigmoid")
    return map_elements(data, maths.sigmoid, "sigmoid")


def sigmoid_numpy(data: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-widen(data)))).astype(data.dtype)


def tanh(data: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    _require_float(data, "tanh")
    return map_elements(data, maths.tanh, "tanh")


def tanh_numpy(data: Array) -> Array:
    return np.asarray(np.tanh(widen(data))).astype(data.dtype)


def clip(data: Tensor, minimum: float = -math.inf, maximum: float = math.inf) -> Tensor:
    """min(max(x, minimum), maximum), the bounds rounded to a float dtype; NaN stays NaN."""
    _require_float(data, "clip")

    def clipped(x: Expr) -> Expr:
        above = maths.maximum(x, const(minimum, data.dtype))
        return maths.minimum(above, const(maximum, data.dtype))

    return map_elements(data, clipped, "clip")


def clip_numpy(
    data: Array, minimum: float = -math.inf, maximum: float = math.inf
) -> Array:
    kind = data.dtype.type
    return np.asarray(np.minimum(np.maximum(data, kind(minimum)), kind(maximum)))


def identity(data: Tensor) -> Tensor:
    """The same elements in other memory."""
    return map_elements(data, lambda x: x, "identity")


def identity_numpy(data: Array) -> Array:
    return data.copy()
