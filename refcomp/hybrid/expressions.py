"""Expressions of hybrid functions: Python's syntax to values and to expressions of the loop IR.

What is known while compiling (numbers, shapes, tuples) is computed at once, as Python would. The
rest means in compiled code what it means in Python, or is refused: `/` of integers, `%` of floats.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refcomp.foundation.dtype import BOOL
from refcomp.foundation.errors import UserError
from refcomp.hybrid.plain import CASTS
from refcomp.hybrid.source import PythonSource
from refcomp.ir.builder import BufferPointer
from refcomp.ir.expr import EQ, GE, GT, LE, LT, NE, Expr, FloorMod, Not
from refcomp.ir.promotion import as_expr, binary, cast, match_types
from refcomp.te import maths

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
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
_COMPARISONS: dict[type[ast.AST], tuple[Callable[[Any, Any], Any], type[Any]]] = {
    ast.Eq: (operator.eq, EQ),
    ast.NotEq: (operator.ne, NE),
    ast.Lt: (operator.lt, LT),
    ast.LtE: (operator.le, LE),
    ast.Gt: (operator.gt, GT),
    ast.GtE: (operator.ge, GE),
}
_INTRINSICS = (
    *(
        "exp",
        "exp2",
        "exp10",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "sigmoid",
    ),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "floor", "ceil", "trunc", "round", "abs"),
    *("isnan", "isinf", "isfinite", "hypot", "copysign", "pow", "power"),
    *("select", "if_then_else", "min", "max"),
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(
        maths, {"pow": "power", "min": "minimum", "max": "maximum"}.get(name, name)
    )
    for name in _INTRINSICS
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A local name that is assigned several times: memory of one element, for what runs in
    `concurrent` loops whose iterations run at once."""

    pointer: BufferPointer
    concurrent: int


class Evaluator:
    """Values of expressions; `names` are the local names in scope."""

    def __init__(self, source: PythonSource) -> None:
        self.source = source
        self.names: dict[str, Any] = {}

    def value(self, node: ast.expr) -> Any:
        """A Python number, text or tuple, an Expr, or a BufferPointer."""
        rule = _RULES.get(type(node))
        if rule is None:
            what = type(node).__name__
            self.source.refuse(node, f"{what} is no part of hybrid functions")
        try:
            return rule(self, node)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            self.source.refuse(node, f"{error}")
        except UserError as error:
            if error.where is None or self.source.filename not in error.where:
                self.source.refuse(node, error.what, error.remedy)
            raise

    def number(self, node: ast.expr) -> Expr:
        """The value of `node` as an expression of the loop IR."""
        value = self.value(node)
        if isinstance(value, BufferPointer | tuple | str) or value is None:
            self.source.refuse(
                node, f"{ast.unparse(node)} is no number", "read an element of it"
            )
        return as_expr(value)

    def constant(self, node: ast.expr, kind: type[Any], what: str) -> Any:
        """The value of `node`, which must be known while compiling."""
        value = self.value(node)
        if not isinstance(value, kind) or isinstance(value, bool):
            self.source.refuse(
                node, f"{what} must be a constant, not {ast.unparse(node)}"
            )
        return value

    # One rule for each form.

    def _constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, bool | int | float | str):
            self.source.refuse(node, f"{node.value!r} is no value of hybrid functions")
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            held = self.names[node.id]
            return held.pointer[0] if isinstance(held, Cell) else held
        if node.id not in self.source.outer:
            self.source.refuse(
                node,
                f"{node.id} has no value here",
                "assign it in the same block, before",
            )
        return self._outer(node, self.source.outer[node.id])

    def _outer(self, node: ast.expr, value: Any) -> Any:
        """What a name from around the function may be."""
        if isinstance(value, tuple | list):
            return tuple(self._outer(node, item) for item in value)
        if isinstance(value, bool | int | float | str | Expr):
            return value
        if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            return value.item()
        self.source.refuse(
            node,
            f"{ast.unparse(node)} is a {type(value).__name__} from outside",
            "pass tensors as arguments; numbers and tuples of them may come from outside",
        )

    def _tuple(self, node: ast.Tuple | ast.List) -> Any:
        return tuple(self.value(item) for item in node.elts)

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, BufferPointer) and node.attr in ("shape", "ndim", "dtype"):
            shape = tuple(getattr(dim, "value", dim) for dim in owner.view.shape)
            return {"shape": shape, "ndim": len(shape), "dtype": str(owner.dtype)}[
                node.attr
            ]
        self.source.refuse(node, f"{ast.unparse(node.value)} has no {node.attr} here")

    def _subscript(self, node: ast.Subscript) -> Any:
        owner, index = self.value(node.value), self.value(node.slice)
        if isinstance(owner, BufferPointer):
            return owner[self.element(node, owner, index)]
        if isinstance(owner, tuple):
            if not isinstance(index, int):
                self.source.refuse(node, "a tuple is indexed by a constant")
            return owner[index]
        self.source.refuse(node, f"{ast.unparse(node.value)} has no elements")

    def element(
        self, node: ast.Subscript, owner: BufferPointer, index: Any
    ) -> tuple[Any, ...]:
        """One index for each dimension; UserError for another number, and for negative ones."""
        indices = index if isinstance(index, tuple) else (index,)
        rank = len(owner.view.shape)
        if len(indices) != rank:
            self.source.refuse(
                node,
                f"{ast.unparse(node.value)} has {rank} dimensions and is given {len(indices)}",
                "give one index per dimension",
            )
        if any(isinstance(i, int) and i < 0 for i in indices):
            self.source.refuse(
                node, "an index counts from the begin", "use shape[0] - 1, ..."
            )
        return indices

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return Not(cast(BOOL, value)) if isinstance(value, Expr) else not value
        if isinstance(node.op, ast.USub):
            return -value
        return ~value if isinstance(node.op, ast.Invert) else value

    def _binary(self, node: ast.BinOp) -> Any:
        return self.combine(
            node, type(node.op), self.value(node.left), self.value(node.right)
        )

    def combine(self, node: ast.AST, op: type[ast.AST], a: Any, b: Any) -> Any:
        """What the operator `op` gives for two values."""
        if op not in _OPERATORS:
            self.source.refuse(node, "this operator is no part of hybrid functions")
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

    def _compare(self, node: ast.Compare) -> Any:
        values = [
            self.value(node.left),
            *(self.value(item) for item in node.comparators),
        ]
        parts = []
        for op, a, b in zip(node.ops, values, values[1:], strict=False):
            if type(op) not in _COMPARISONS:
                self.source.refuse(
                    node, "`in` and `is` are no part of hybrid functions"
                )
            plain, cls = _COMPARISONS[type(op)]
            known = not isinstance(a, Expr) and not isinstance(b, Expr)
            parts.append(plain(a, b) if known else binary(cls, a, b))
        return self._all(parts)

    def _bool(self, node: ast.BoolOp) -> Any:
        values = [self.value(item) for item in node.values]
        return self._all(values) if isinstance(node.op, ast.And) else self._any(values)

    def _all(self, values: list[Any]) -> Any:
        """Python's `and`: what follows a false one is not evaluated."""
        result = values[-1]
        for value in reversed(values[:-1]):
            if isinstance(value, Expr):
                result = maths.if_then_else(
                    value, cast(BOOL, result), cast(BOOL, False)
                )
            elif not value:
                result = value
        return result

    def _any(self, values: list[Any]) -> Any:
        result = values[-1]
        for value in reversed(values[:-1]):
            if isinstance(value, Expr):
                result = maths.if_then_else(value, cast(BOOL, True), cast(BOOL, result))
            elif value:
                result = value
        return result

    def _if_expression(self, node: ast.IfExp) -> Any:
        condition = self.value(node.test)
        if not isinstance(condition, Expr):
            return self.value(node.body if condition else node.orelse)
        return maths.if_then_else(
            condition, self.number(node.body), self.number(node.orelse)
        )

    def _call(self, node: ast.Call) -> Any:
        if node.keywords:
            self.source.refuse(node, "functions are called without keywords here")
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        args = [self.value(arg) for arg in node.args]
        if name in CASTS:
            return cast(CASTS[name], *args)
        if name == "len" and len(args) == 1:
            return self._length(args[0])
        if name in FUNCTIONS:
            return self._function(FUNCTIONS[name], args)
        known = ", ".join(["len", *sorted(FUNCTIONS), *CASTS])
        self.source.refuse(
            node, f"{ast.unparse(node.func)} cannot be called here", f"use {known}"
        )

    def _function(self, function: Callable[..., Any], args: list[Any]) -> Any:
        if function in (maths.minimum, maths.maximum) and len(args) > 2:
            rest = self._function(function, args[1:])
            return function(args[0], rest)
        return function(*args)

    def _length(self, value: Any) -> Any:
        if isinstance(value, BufferPointer) and value.view.shape:
            extent = value.view.shape[0]
            return getattr(extent, "value", extent)
        return len(value)


_RULES: dict[type[ast.AST], Callable[[Evaluator, Any], Any]] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Tuple: Evaluator._tuple,
    ast.List: Evaluator._tuple,
    ast.Attribute: Evaluator._attribute,
    ast.Subscript: Evaluator._subscript,
    ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary,
    ast.Compare: Evaluator._compare,
    ast.BoolOp: Evaluator._bool,
    ast.IfExp: Evaluator._if_expression,
    ast.Call: Evaluator._call,
}
