"""Refusals of what Python and numpy do with numbers, for values known only when a program runs.

`NotANumber` is the base of expressions and tensors. numpy's arithmetic with such a value does the
same as Python's operators. Every other function of numpy, of `math` and of Python itself is
refused. The message names refcomp's function for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from refcomp.foundation.errors import UserError

# Functions of numpy, and their names in refcomp if these differ.
_RENAMED = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "bitwise_count": "popcount",
    "float_power": "power",
    "fmax": "maximum",
    "fmin": "minimum",
    "logical_and": "all",
    "logical_or": "any",
    "rint": "nearbyint",
    "where": "if_then_else",
}
# Functions that have the same name in refcomp.
_SAME = (
    "all any ceil copysign cos cosh exp exp2 expm1 fabs floor fmod hypot isfinite isinf isnan "
    "ldexp log log10 log1p log2 max maximum min minimum nextafter power prod round sin sinh sqrt "
    "sum tan tanh trunc"
)
REFCOMP_NAMES = _RENAMED | {name: name for name in _SAME.split()}
# Reductions in numpy; their names in refcomp need an axis.
_REDUCTIONS = ("all", "any", "max", "min", "prod", "sum")

# numpy's name of an operator -> the methods of its left and of its right operand
_OPERATORS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
    "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
}


class NotANumber:
    """A value known only when the program runs: Python and numpy cannot compute with it."""

    __slots__ = ()

    def _in_words(self) -> str:
        """Return how messages call this value."""
        return "an expression"

    def _advise(self, call: str) -> str:
        """Return the advice to write `call`, which calls a function of refcomp on `x`."""
        return f"use {call}"

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> object:
        if method == "__call__" and not options and ufunc.__name__ in _OPERATORS:
            left, right = inputs
            left_method, right_method = _OPERATORS[ufunc.__name__]
            result: object = NotImplemented
            if isinstance(left, NotANumber):
                result = getattr(left, left_method)(right)
            # An expression leaves its operators with a tensor to the tensor.
            if result is NotImplemented and isinstance(right, NotANumber):
                result = getattr(right, right_method)(left)
            if result is NotImplemented:
                # Tensors are compared by identity, so a tensor never equals a number.
                return ufunc.__name__ == "not_equal"
            return result
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise self._refusal_of_numpy(name, ", ".join("xyz"[: ufunc.nin]))

    def __array_function__(
        self,
        function: Callable[..., object],
        types: object,
        args: object,
        options: object,
    ) -> NoReturn:
        name = function.__name__
        raise self._refusal_of_numpy(name, "c, x, y" if name == "where" else "x")

    def _refusal_of_numpy(self, name: str, arguments: str) -> UserError:
        if name in _REDUCTIONS:
            remedy = (
                f"use refcomp.{name}(x, axis=k) with k = refcomp.reduce_axis((0, n))"
            )
        elif name in REFCOMP_NAMES:
            remedy = self._advise(f"refcomp.{REFCOMP_NAMES[name]}({arguments})")
        else:
            remedy = "write it with refcomp's functions, which help(refcomp.te) lists"
        return UserError(
            f"numpy's {name} cannot be applied to {self._in_words()}",
            why="numpy computes at once; the value is known when the built program runs",
            remedy=remedy,
        )

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        self._refuse(
            "numpy's array()", "pass numbers to the built function; it fills an array"
        )

    def _refuse(self, function: str, remedy: str) -> NoReturn:
        raise UserError(
            f"{function} cannot be applied to {self._in_words()}",
            why="its value is known when the built program runs",
            remedy=remedy,
        )

    def __float__(self) -> float:
        self._refuse(
            "float(), which functions of Python's math module call,",
            f"{self._advise('refcomp.exp(x)')} for math.exp(x); .astype(dtype) converts",
        )

    def __int__(self) -> int:
        self._refuse("int()", 'use .astype("int32"), which converts in the program')

    def __index__(self) -> int:
        self._refuse(
            "range(), or an index of Python's or numpy's,",
            "let refcomp.compute or refcomp.reduce_axis make the loop",
        )

    def __abs__(self) -> NoReturn:
        self._refuse("abs()", self._advise("refcomp.abs(x)"))

    def __round__(self, digits: object = None) -> NoReturn:
        self._refuse("round()", self._advise("refcomp.round(x)"))

    def __floor__(self) -> NoReturn:
        self._refuse("math.floor()", self._advise("refcomp.floor(x)"))

    def __ceil__(self) -> NoReturn:
        self._refuse("math.ceil()", self._advise("refcomp.ceil(x)"))

    def __trunc__(self) -> NoReturn:
        self._refuse("math.trunc()", self._advise("refcomp.trunc(x)"))

    def __pow__(self, other: object, modulus: object = None) -> NoReturn:
        self._refuse("`**`", self._advise("x * x or refcomp.power(x, y)"))

    def __rpow__(self, other: object, modulus: object = None) -> NoReturn:
        self._refuse("`**`", self._advise("refcomp.power(x, y) or refcomp.exp2(y)"))

    def __divmod__(self, other: object) -> NoReturn:
        self._refuse(
            "divmod()",
            self._advise("refcomp.floordiv(x, y) and refcomp.floormod(x, y)"),
        )

    __rdivmod__ = __divmod__

    def __matmul__(self, other: object) -> NoReturn:
        self._refuse("`@`", "use refcomp.topi.matmul(A, B), of two tensors")

    __rmatmul__ = __matmul__
