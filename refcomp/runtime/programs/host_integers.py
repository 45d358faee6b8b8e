"""Compiles the integer expressions of a host function to Python closures.

Extents, sizes and conditions of a Program's host function are integers and bools of parameters,
symbols and loop variables. A closure takes the list of values that a call works on, and gives the
exact value that `refcomp.ir.expr` defines; a bool is 0 or 1. Refuses floats, vectors and reads of
memory: these are a kernel's work.
"""

from collections.abc import Callable
from typing import Any

from refcomp.arith.constants import fold_integers
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.integers import wrap
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children

Values = list[Any]
Evaluate = Callable[[Values], int]

# A closure calls those of its operands: deeper trees would not fit Python's stack at a call.
MOST_DEPTH = 200


class Slots:
    """Where in the list of values each variable and buffer has its place."""

    def __init__(self) -> None:
        self._places: dict[Node, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place(self, item: Node) -> int:
        """The place of `item`, which it keeps from the first question on."""
        return self._places.setdefault(item, len(self._places))


def compile_integer(expr: Expr, slots: Slots) -> Evaluate:
    """A closure that gives the value of `expr`.

    Unsupported for what is no scalar integer, and for more than MOST_DEPTH nested operations.
    """
    if _depth(expr) > MOST_DEPTH:
        raise Unsupported(
            f"the host cannot evaluate an expression of more than {MOST_DEPTH} nested operations",
            why="it evaluates extents and sizes in Python, at every call",
            remedy="pass parts of it as scalar arguments",
        )
    return _compile(expr, slots)


def _depth(expr: Expr) -> int:
    """Nodes on the longest way down, at most a little over MOST_DEPTH."""
    depth, level = 0, [expr]
    while level and depth <= MOST_DEPTH:
        depth += 1
        level = list(
            {
                id(c): c for e in level for c in children(e) if isinstance(c, Expr)
            }.values()
        )
    return depth


def _compile(expr: Expr, slots: Slots) -> Evaluate:
    if expr.dtype.lanes != 1 or not (expr.dtype.is_int or expr.dtype.is_bool):
        raise _unsupported(expr)
    match expr:
        case ir.IntImm(value=constant):
            return lambda values: constant
        case Var():
            place = slots.place(expr)
            return lambda values: int(values[place])
        case ir.Cast(value=value):
            return _wrapped(_compile(value, slots), value.dtype, expr.dtype)
        case ir.Not(a=a):
            operand = _compile(a, slots)
            return lambda values: 1 - operand(values)
        case ir.Select() | ir.IfThenElseExpr():
            return _choice(expr, slots)
        case ir.Let():
            return _let(expr, slots)
        case ir.BinaryExpr():
            return _binary(expr, slots)
    raise _unsupported(expr)


def _unsupported(expr: Expr) -> Unsupported:
    return Unsupported(
        f"the host cannot evaluate {expr!r}",
        why=f"it is a {type(expr).__name__} of {expr.dtype}, and between kernels the host works "
        "with integers only",
        remedy="let a kernel compute it, or pass it as a scalar argument",
    )


def _binary(expr: ir.BinaryExpr, slots: Slots) -> Evaluate:
    a, b = _compile(expr.a, slots), _compile(expr.b, slots)
    cls, dtype = type(expr), expr.a.dtype

    def evaluate(values: Values) -> int:
        result = fold_integers(cls, a(values), b(values), dtype)
        assert result is not None, "every binary node has a meaning on integers"
        return result

    return _wrapped(evaluate, None, expr.dtype)


def _wrapped(evaluate: Evaluate, source: DType | None, target: DType) -> Evaluate:
    """`evaluate` with its result wrapped to `target`; as it is where `source` says it fits."""
    if target.is_bool:
        return lambda values: int(evaluate(values) != 0)
    least, most = target.min_value, target.max_value
    if source is not None and least <= source.min_value and source.max_value <= most:
        return evaluate

    def wrapped(values: Values) -> int:
        value = evaluate(values)
        return value if least <= value <= most else wrap(value, target)

    return wrapped


def _choice(expr: ir.Select | ir.IfThenElseExpr, slots: Slots) -> Evaluate:
    # Evaluating the other value too would change nothing: integers have no effects.
    condition, true_value, false_value = (
        _compile(e, slots) for e in (expr.condition, expr.true_value, expr.false_value)
    )
    return lambda values: (true_value if condition(values) else false_value)(values)


def _let(expr: ir.Let, slots: Slots) -> Evaluate:
    value, place = _compile(expr.value, slots), slots.place(expr.var)
    body = _compile(expr.body, slots)

    def evaluate(values: Values) -> int:
        values[place] = value(values)
        return body(values)

    return evaluate
