"""Adjoints of the reads of an expression: the chain rule, from the root to the leaves.

    expression   exp(A[i]) * B[j]
    seed         s
    adjoints     A[i]: s * B[j] * exp(A[i])      B[j]: s * exp(A[i])

Only floats have adjoints. Where a function has a kink, one of its slopes is taken: `max(a, b)` and
`min(a, b)` pass the seed to `a` if both are equal, and `abs` has the slope 0 at 0. Functions that
are constant between jumps, such as `floor`, have none.

Reference: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition, 2008, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from refcomp.foundation.errors import Unsupported
from refcomp.ir.expr import (
    Add,
    Call,
    Cast,
    Div,
    Expr,
    IfThenElseExpr,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    Sub,
)
from refcomp.ir.node import Node
from refcomp.ir.promotion import cast, const
from refcomp.ir.rewrite import Rewrite, children, map_children, rewriter, substitute
from refcomp.te import maths
from refcomp.te.tensor import TensorRead

# (operand, its adjoint), for each operand that has one.
_Flows = list[tuple[Expr, Expr]]

_CONSTANT_BETWEEN_JUMPS = ("floor", "ceil", "trunc", "round")


def adjoints(root: Expr, seed: Expr) -> list[tuple[TensorRead, Expr]]:
    """Return the reads on which `root` depends smoothly, each with its adjoint.

    Args:
        root: an expression of floats, not a reduction.
        seed: the adjoint of the expression, of its dtype.

    Raises:
        Unsupported: the derivative of a function in it is unknown.
    """
    root = _without_lets(root)
    found: list[tuple[TensorRead, Expr]] = []
    arriving: dict[int, list[Expr]] = {id(root): [seed]}
    # Users of a shared subtree come before it, so that its adjoint is complete.
    for expr in _users_first(root):
        flows = arriving.get(id(expr))
        if flows is None:
            continue
        total = flows[0]
        for flow in flows[1:]:
            total = total + flow
        if isinstance(expr, TensorRead):
            found.append((expr, total))
            continue
        if isinstance(expr, IfThenElseExpr):
            found += _of_branches(expr, total)
            continue
        for operand, flow in _flows(expr, total):
            if operand.dtype.is_float:
                arriving.setdefault(id(operand), []).append(flow)
    return found


def _of_branches(expr: IfThenElseExpr, seed: Expr) -> list[tuple[TensorRead, Expr]]:
    """Return the reads in both branches, each with its adjoint.

    An adjoint may read what else its branch reads, so it is guarded as a whole.
    """
    found: list[tuple[TensorRead, Expr]] = []
    for read, adjoint in adjoints(expr.true_value, seed):
        zero = const(0, adjoint.dtype)
        guarded = maths.if_then_else(expr.condition, adjoint, zero)
        found.append((read, guarded))
    for read, adjoint in adjoints(expr.false_value, seed):
        zero = const(0, adjoint.dtype)
        guarded = maths.if_then_else(expr.condition, zero, adjoint)
        found.append((read, guarded))
    return found


def _users_first(root: Expr) -> list[Expr]:
    """Return the expressions in `root`, each before its operands; indices are left out."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        expr, is_done = stack.pop()
        if is_done:
            order.append(expr)
            continue
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        stack.append((expr, True))
        if not isinstance(expr, TensorRead):
            stack += [(child, False) for child in children(expr)]
    return order[::-1]


def _inline_lets(recurse: Rewrite, node: Node) -> Node:
    if isinstance(node, Let):
        return recurse(substitute(node.body, {node.var: node.value}))
    return map_children(node, recurse)


_without_lets = rewriter(_inline_lets)


def _flows(expr: Expr, seed: Expr) -> _Flows:
    """Return the operands of `expr` with their adjoints, if that of `expr` is `seed`."""
    match expr:
        case Add(a=a, b=b):
            return [(a, seed), (b, seed)]
        case Sub(a=a, b=b):
            return [(a, seed), (b, -seed)]
        case Mul(a=a, b=b):
            return [(a, seed * b), (b, seed * a)]
        case Div(a=a, b=b):
            return [(a, seed / b), (b, -seed * expr / b)]
        case Mod(a=a, b=b):
            return [(a, seed), (b, -seed * maths.trunc(a / b))]
        case Max(a=a, b=b):
            return _chosen(a >= b, a, b, seed)
        case Min(a=a, b=b):
            return _chosen(a <= b, a, b, seed)
        case Select(condition=condition, true_value=a, false_value=b):
            return _chosen(condition, a, b, seed)
        case Cast(value=value) if value.dtype.is_float:
            return [(value, cast(value.dtype, seed))]
        case Call(name=name, args=args):
            return _flows_of_call(expr, name, args, seed)
    # Constants, variables, and quotients that are rounded down.
    return []


def _chosen(condition: Expr, a: Expr, b: Expr, seed: Expr) -> _Flows:
    zero = const(0, seed.dtype)
    first = maths.select(condition, seed, zero)
    second = maths.select(condition, zero, seed)
    return [(a, first), (b, second)]


def _flows_of_call(expr: Expr, name: str, args: Sequence[Expr], seed: Expr) -> _Flows:
    if name in _CONSTANT_BETWEEN_JUMPS or not expr.dtype.is_float:
        return []
    if name in _SLOPES:
        return [(args[0], seed * _SLOPES[name](args[0], expr))]
    if name in _OF_SEVERAL:
        slopes = _OF_SEVERAL[name](*args, expr)
        return [(arg, seed * slope) for arg, slope in zip(args, slopes, strict=True)]
    raise Unsupported(
        f"the derivative of {name} is unknown",
        why="gradients are taken of arithmetic, choices and smooth functions only",
        remedy="write the computation with other functions, or its gradient by hand",
    )


def _slope_of_abs(x: Expr, _value: Expr) -> Expr:
    one = const(1, x.dtype)
    negative = maths.select(x < 0, -one, const(0, x.dtype))
    return maths.select(x > 0, one, negative)


# Function of one operand -> its slope, from the operand and the value.
_SLOPES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "abs": _slope_of_abs,
    "exp": lambda _x, value: value,
    "exp2": lambda _x, value: value * math.log(2),
    "exp10": lambda _x, value: value * math.log(10),
    "expm1": lambda _x, value: value + 1,
    "log": lambda x, _value: 1 / x,
    "log2": lambda x, _value: 1 / (x * math.log(2)),
    "log10": lambda x, _value: 1 / (x * math.log(10)),
    "log1p": lambda x, _value: 1 / (1 + x),
    "erf": lambda x, _value: maths.exp(-x * x) * (2 / math.sqrt(math.pi)),
    "sqrt": lambda _x, value: 0.5 / value,
    "rsqrt": lambda x, value: -0.5 * value / x,
    "sin": lambda x, _value: maths.cos(x),
    "cos": lambda x, _value: -maths.sin(x),
    "tan": lambda _x, value: 1 + value * value,
    "asin": lambda x, _value: maths.rsqrt(1 - x * x),
    "acos": lambda x, _value: -maths.rsqrt(1 - x * x),
    "atan": lambda x, _value: 1 / (1 + x * x),
    "sinh": lambda x, _value: maths.cosh(x),
    "cosh": lambda x, _value: maths.sinh(x),
    "tanh": lambda _x, value: 1 - value * value,
    "asinh": lambda x, _value: maths.rsqrt(x * x + 1),
    "acosh": lambda x, _value: maths.rsqrt(x * x - 1),
    "atanh": lambda x, _value: 1 / (1 - x * x),
    "sigmoid": lambda _x, value: value * (1 - value),
}


def _slopes_of_pow(base: Expr, exponent: Expr, value: Expr) -> tuple[Expr, Expr]:
    by_base = exponent * maths.power(base, exponent - 1)
    return by_base, value * maths.log(base)


def _slopes_of_atan2(y: Expr, x: Expr, _value: Expr) -> tuple[Expr, Expr]:
    square = x * x + y * y
    return x / square, -y / square


def _slopes_of_copysign(size: Expr, sign: Expr, value: Expr) -> tuple[Expr, Expr]:
    one = const(1, size.dtype)
    is_kept = maths.copysign(one, size).equal(maths.copysign(one, sign))
    return maths.select(is_kept, one, -one), const(0, sign.dtype)


# Function of several operands -> its slopes, from the operands and the value.
_OF_SEVERAL: dict[str, Callable[..., tuple[Expr, ...]]] = {
    "pow": _slopes_of_pow,
    "atan2": _slopes_of_atan2,
    "hypot": lambda x, y, value: (x / value, y / value),
    "copysign": _slopes_of_copysign,
    "fma": lambda a, b, c, _value: (b, a, const(1, c.dtype)),
}
