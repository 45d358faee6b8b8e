"""Evaluation of expressions of hybrid functions, to Python values and expressions of the loop IR.

Values that are known while compiling (numbers, shapes, tuples) are computed at once, as Python
would. All other expressions mean the same in compiled code as in Python, or are refused: `/` of
integers, `%` of floats.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from refcomp.foundation.dtype import BOOL
from refcomp.foundation.errors import UserError
from refcomp.hybrid.plain import CASTS
from refcomp.hybrid.source import PythonSource
from refcomp.ir.builder import BufferPointer
from refcomp.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    BinaryExpr,
    Expr,
    FloorMod,
    IntImm,
    Not,
)
from refcomp.ir.promotion import as_expr, binary, cast, match_types
from refcomp.te import maths

# A Python number, text or tuple of values, an Expr, or a BufferPointer.
Value = object
_Binary = Callable[[Any, Any], Value]

_OPERATORS: dict[type[ast.AST], _Binary] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
# Comparison in the source -> the function of known values, and the node of expressions.
_COMPARISONS: dict[type[ast.AST], tuple[_Binary, type[BinaryExpr]]] = {
    ast.Eq: (operator.eq, EQ),
    ast.NotEq: (operator.ne, NE),
    ast.Lt: (operator.lt, LT),
    ast.LtE: (operator.le, LE),
    ast.Gt: (operator.gt, GT),
    ast.GtE: (operator.ge, GE),
}
_SAME_NAMES = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt sigmoid sin cos tan asin acos atan atan2 "
    "sinh cosh tanh asinh acosh atanh floor ceil trunc round abs isnan isinf isfinite hypot "
    "copysign popcount power select if_then_else"
)
FUNCTIONS: dict[str, Callable[..., Expr]] = {
    **{name: getattr(maths, name) for name in _SAME_NAMES.split()},
    "pow": maths.power,
    "min": maths.minimum,
    "max": maths.maximum,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """The memory of a local name that is assigned several times."""

    pointer: BufferPointer  # to one element
    concurrent: int  # loops around the first assignment whose iterations run at once


class Evaluator:
    """Values of expressions in one function."""

    def __init__(self, source: PythonSource) -> None:
        self.source = source
        self.names: dict[str, Value | Cell] = {}  # the local names in scope

    def value(self, node: ast.expr) -> Value:
        """Return the value of `node`. Raises UserError that names its line."""
        try:
            return self._evaluate(node)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            self.source.refuse(node, f"{error}")
        except UserError as error:
            if error.at is None or not error.at.place.startswith(self.source.filename):
                self.source.refuse(node, error.what, error.remedy)
            raise

    def number(self, node: ast.expr) -> Expr:
        """Return the value of `node` as an expression of the loop IR."""
        value = self.value(node)
        if isinstance(value, BufferPointer | tuple | str) or value is None:
            self.source.refuse(
                node, f"{ast.unparse(node)} is not a number", "read an element of it"
            )
        return as_expr(value)

    def owner(self, node: ast.Subscript) -> tuple[Value, list[ast.expr]]:
        """Return whose element `node` is, and the indices: `a` and two of them for `a[i][j]`."""
        if isinstance(node.value, ast.Subscript):
            owner, slices = self.owner(node.value)
            if isinstance(owner, BufferPointer):
                return owner, [*slices, node.slice]
            # Not `self.value(node.value)`, which would evaluate each level twice.
            return self._item(node.value, owner), [node.slice]
        return self.value(node.value), [node.slice]

    def element(
        self, node: ast.Subscript, owner: BufferPointer, slices: Sequence[ast.expr]
    ) -> tuple[Value, ...]:
        """Return the indices of an element of `owner`, one for each dimension.

        Raises UserError for another number of indices, and for negative ones.
        """
        indices: tuple[Value, ...] = ()
        for given in map(self.value, slices):
            indices += given if isinstance(given, tuple) else (given,)
        rank = len(owner.view.shape)
        if len(indices) != rank:
            self.source.refuse(
                node,
                f"{owner.view.name} has {rank} dimensions and is given {len(indices)}",
                "give one index per dimension",
            )
        if any(isinstance(i, int) and i < 0 for i in indices):
            self.source.refuse(
                node, "an index cannot be negative", "use shape[0] - 1, ..."
            )
        return indices

    def combine(self, node: ast.AST, op: type[ast.AST], a: Value, b: Value) -> Value:
        """Return the result of the operator `op` on two values."""
        if op not in _OPERATORS:
            self.source.refuse(node, "this operator is not part of hybrid functions")
        if not isinstance(a, Expr) and not isinstance(b, Expr):
            return _OPERATORS[op](a, b)
        x, y = match_types(a, b)
        if op is ast.Div and not x.dtype.is_float:
            self.source.refuse(
                node,
                f"`/` of {x.dtype} gives a float in Python, but no type says which",
                "use //, or convert first: float32(a) / b",
            )
        if op is ast.Mod and x.dtype.is_float:
            self.source.refuse(
                node,
                f"`%` of {x.dtype} is not compiled",
                "compute a - floor(a / b) * b",
            )
        if op is ast.Pow:
            return maths.power(x, y)
        if op is ast.Mod:
            return binary(FloorMod, x, y)
        return _OPERATORS[op](x, y)

    def _evaluate(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(bool() | int() | float() | str() as constant):
                return constant
            case ast.Constant(constant):
                what = f"{constant!r} is not a value of hybrid functions"
                self.source.refuse(node, what)
            case ast.Name(name):
                return self._named(node, name)
            case ast.Tuple(items) | ast.List(items):
                return tuple(map(self.value, items))
            case ast.Attribute(of, name):
                return self._attribute(node, self.value(of), name)
            case ast.Subscript():
                return self._subscript(node)
            case ast.UnaryOp(op, operand):
                return _unary(op, self.value(operand))
            case ast.BinOp(left, op, right):
                a = self.value(left)
                return self.combine(node, type(op), a, self.value(right))
            case ast.Compare(left, ops, others):
                return self._compare(node, ops, [left, *others])
            case ast.BoolOp(op, operands):
                values = [self.value(operand) for operand in operands]
                return _logical(values, is_and=isinstance(op, ast.And))
            case ast.IfExp(test, yes, no):
                condition = self.value(test)
                if not isinstance(condition, Expr):
                    return self.value(yes if condition else no)
                a = self.number(yes)
                return maths.if_then_else(condition, a, self.number(no))
            case ast.Call():
                return self._call(node)
        what = type(node).__name__
        self.source.refuse(node, f"{what} is not part of hybrid functions")

    def _named(self, node: ast.Name, name: str) -> Value:
        if name in self.names:
            held = self.names[name]
            return held.pointer[0] if isinstance(held, Cell) else held
        if name not in self.source.outer:
            self.source.refuse(
                node,
                f"{name} has no value here",
                "assign it in the same block, before",
            )
        return self._outer(node, self.source.outer[name])

    def _outer(self, node: ast.expr, value: Value) -> Value:
        """Return the value of a name from outside of the function, if it may be used."""
        if isinstance(value, tuple | list):
            return tuple(self._outer(node, item) for item in value)
        if isinstance(value, bool | int | float | str | Expr):
            return value
        # A scalar of numpy becomes a number of Python. An array would be constants without name.
        item: Callable[[], Value] | None = getattr(value, "item", None)
        if item is not None and getattr(value, "ndim", None) == 0:
            return item()
        self.source.refuse(
            node,
            f"{ast.unparse(node)} is a {type(value).__name__} from outside",
            "pass tensors as arguments; numbers and tuples of them may come from outside",
        )

    def _attribute(self, node: ast.Attribute, owner: Value, name: str) -> Value:
        if isinstance(owner, BufferPointer):
            shape = owner.view.shape
            match name:
                case "shape":
                    return tuple(map(_extent, shape))
                case "ndim":
                    return len(shape)
                case "dtype":
                    return str(owner.dtype)
        self.source.refuse(node, f"{ast.unparse(node.value)} has no {name} here")

    def _subscript(self, node: ast.Subscript) -> Value:
        owner, slices = self.owner(node)
        if isinstance(owner, BufferPointer):
            return owner[self.element(node, owner, slices)]
        return self._item(node, owner)

    def _item(self, node: ast.Subscript, owner: Value) -> Value:
        """Return the item of a tuple, `t[i, j]` of a tuple of tuples; refuse other owners."""
        indices = self.value(node.slice)
        item = owner
        for index in indices if isinstance(indices, tuple) else (indices,):
            if not isinstance(item, tuple):
                self.source.refuse(node, f"{ast.unparse(node.value)} has no elements")
            if not isinstance(index, int):
                why = "the index of a tuple must be a constant integer"
                self.source.refuse(node, why, "loop over const_range")
            if not -len(item) <= index < len(item):
                self.source.refuse(node, f"the tuple has no item {index}")
            item = item[index]
        return item

    def _compare(
        self, node: ast.Compare, ops: Sequence[ast.cmpop], operands: Sequence[ast.expr]
    ) -> Value:
        values = [self.value(operand) for operand in operands]
        parts: list[Value] = []
        for op, a, b in zip(ops, values, values[1:], strict=False):
            if type(op) not in _COMPARISONS:
                self.source.refuse(
                    node, "`in` and `is` are not part of hybrid functions"
                )
            plain, cls = _COMPARISONS[type(op)]
            # A comparison of known values decides branches while compiling.
            if isinstance(a, Expr) or isinstance(b, Expr):
                parts.append(binary(cls, a, b))
            else:
                parts.append(plain(a, b))
        return _logical(parts, is_and=True)

    def _call(self, node: ast.Call) -> Value:
        if node.keywords:
            self.source.refuse(node, "a call cannot have keyword arguments here")
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        args = [self.value(arg) for arg in node.args]
        if name in CASTS:
            return cast(CASTS[name], *args)
        if name == "len" and len(args) == 1:
            value: Any = args[0]
            if isinstance(value, BufferPointer) and value.view.shape:
                return _extent(value.view.shape[0])
            return len(value)
        # The functions of te take two values; Python's take any number.
        if name in ("min", "max") and len(args) > 2:
            result = args[-1]
            for arg in reversed(args[:-1]):
                result = FUNCTIONS[name](arg, result)
            return result
        if name in FUNCTIONS:
            return FUNCTIONS[name](*args)
        known = ", ".join(["len", *sorted(FUNCTIONS), *CASTS])
        self.source.refuse(
            node, f"{ast.unparse(node.func)} cannot be called here", f"use {known}"
        )


def _extent(dim: Expr) -> int | Expr:
    return dim.value if isinstance(dim, IntImm) else dim


def _unary(op: ast.unaryop, value: Any) -> Value:
    match op:
        case ast.Not():
            return Not(cast(BOOL, value)) if isinstance(value, Expr) else not value
        case ast.USub():
            return -value
        case ast.Invert():
            return ~value
    return value


def _logical(values: Sequence[Value], is_and: bool) -> Value:
    """Return Python's `and` or `or`: operands after the one that decides are not evaluated."""
    result = values[-1]
    for value in reversed(values[:-1]):
        if not isinstance(value, Expr):
            result = result if bool(value) == is_and else value
        elif is_and:
            result = maths.if_then_else(value, cast(BOOL, result), cast(BOOL, False))
        else:
            result = maths.if_then_else(value, cast(BOOL, True), cast(BOOL, result))
    return result
