"""A compiler from integer expressions of a host function to Python closures.

Extents, sizes and conditions of a host function are integers and bools, computed from parameters,
symbols and loop variables. A closure takes the list of values of a call, and returns the exact
value that `refcomp.ir.expr` defines; a bool is 0 or 1. Refuses floats, vectors and reads of memory,
which belong in kernels.
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

# The variables and buffers of a call, each in its slot: integers, numbers, DeviceMemory.
Values = list[Any]
Evaluate = Callable[[Values], int]

# Of nested operations. A closure calls the closures of its operands, and a call of a module must
# not exceed Python's stack.
MAX_DEPTH = 200


class Slots:
    """The slots of variables and buffers in the list of values."""

    def __init__(self) -> None:
        self._places: dict[Node, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place(self, item: Node) -> int:
        """Return the slot of `item`. The first call allocates it."""
        return self._places.setdefault(item, len(self._places))


def compile_integer(expr: Expr, slots: Slots) -> Evaluate:
    """Return a closure that computes the value of `expr`.

    Raises Unsupported unless it is a scalar integer of at most MAX_DEPTH nested operations.
    """
    if _depth(expr) > MAX_DEPTH:
        raise Unsupported(
            f"the host cannot evaluate an expression of more than {MAX_DEPTH} nested operations",
            why="it evaluates extents and sizes in Python, in every call",
            remedy="pass parts of it as scalar arguments",
        )
    return _compile(expr, slots)


def _depth(expr: Expr) -> int:
    """Return the depth of the tree, without going deeper than MAX_DEPTH + 1."""
    depth = 0
    level = [expr]
    while level and depth <= MAX_DEPTH:
        depth += 1
        # By identity, since a shared node would be visited once for each path.
        below: dict[int, Expr] = {}
        for parent in level:
            for child in children(parent):
                if isinstance(child, Expr):
                    below[id(child)] = child
        level = list(below.values())
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
            # Select evaluates both values, but integers have no effects, so one is enough.
            condition = _compile(expr.condition, slots)
            true_value = _compile(expr.true_value, slots)
            false_value = _compile(expr.false_value, slots)
            return lambda v: true_value(v) if condition(v) else false_value(v)
        case ir.Let():
            return _let(expr, slots)
        case ir.BinaryExpr():
            return _binary(expr, slots)
    raise _unsupported(expr)


def _unsupported(expr: Expr) -> Unsupported:
    return Unsupported(
        f"the host cannot evaluate {expr!r}",
        why=f"it is a {type(expr).__name__} of {expr.dtype}, but between kernels the host computes "
        "integers only",
        remedy="let a kernel compute it, or pass it as a scalar argument",
    )


def _binary(expr: ir.BinaryExpr, slots: Slots) -> Evaluate:
    a = _compile(expr.a, slots)
    b = _compile(expr.b, slots)
    cls = type(expr)
    dtype = expr.a.dtype

    def evaluate(values: Values) -> int:
        result = fold_integers(cls, a(values), b(values), dtype)
        assert result is not None, "every binary node has a meaning on integers"
        return result

    return _wrapped(evaluate, None, expr.dtype)


def _wrapped(evaluate: Evaluate, source: DType | None, target: DType) -> Evaluate:
    """Return `evaluate` with its result converted to `target`, modulo 2 ** bits.

    The conversion is left out if all values of `source`, the type of the result, fit.
    """
    if target.is_bool:
        return lambda values: int(evaluate(values) != 0)
    low = target.min_value
    high = target.max_value
    if source is not None and low <= source.min_value and source.max_value <= high:
        return evaluate

    def wrapped(values: Values) -> int:
        value = evaluate(values)
        return value if low <= value <= high else wrap(value, target)

    return wrapped


def _let(expr: ir.Let, slots: Slots) -> Evaluate:
    value = _compile(expr.value, slots)
    place = slots.place(expr.var)
    body = _compile(expr.body, slots)

    def evaluate(values: Values) -> int:
        values[place] = value(values)
        return body(values)

    return evaluate
