"""Calls are refused at entry exactly where an element is read that is not there.

Random programs read tensors of independent sizes, through stages that are inlined, attached or
computed whole. A plain walk over all points is the judge; the interpreter, on the same function
without what it requires, has to agree with it. Indices are affine, or of shifts, remainders,
floats and the like. Reads may be under conditions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import refcomp as rc
from refcomp.foundation.dtype import I64, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import EQ, NE, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import with_fields
from refcomp.lowering.entry_conditions import with_entry_conditions
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.interpret import evaluate_expr, is_fulfilled
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.make_selects_lazy import make_selects_lazy
from tests.strategies.computes import computations
from tests.strategies.lowered_once import lowered_once
from tests.strategies.schedules import schedules

SIZES = st.integers(0, 4)


@dataclass
class Read:
    """A read: the axes' extents, the index, the size read from, and when it is made."""

    axes: list[tuple[Var, object]]
    index: object
    size: object
    guard: object = True


@dataclass
class Drawn:
    """A program, and each read of it. Without `args` it is refused when it is made."""

    args: list[object]
    output: rc.Tensor
    symbols: list[Var]
    reads: list[Read] = field(default_factory=list)


SCALARS = {
    "int64": st.integers(-2, 4),
    "int32": st.integers(-2, 4) | st.sampled_from([2**31 - 1, -(2**31)]),
    "uint64": st.integers(0, 4) | st.sampled_from([2**64 - 1, 2**63]),
    "int8": st.integers(-2, 4) | st.sampled_from([127, -128, 100]),
    "uint32": st.integers(0, 4) | st.just(2**32 - 1),
}


@st.composite
def terms(draw: st.DrawFn, scalar: Var) -> object:
    """An i64 term of a scalar of any type, in whose type it wraps around."""
    kind = draw(st.sampled_from(["plain", "plus", "minus", "times", "quotient", "remainder"]))
    if kind == "plain" or scalar.dtype == I64:
        return scalar.astype("int64")
    constant = rc.const(draw(st.integers(1, 3)), str(scalar.dtype))
    value = {
        "plus": scalar + constant,
        "minus": scalar - constant,
        "times": scalar * constant,
        "quotient": scalar // constant,
        "remainder": scalar % constant,
    }[kind]
    return value.astype("int64")


@st.composite
def affine(draw: st.DrawFn, axes: list[object], scalar: object) -> object:
    """Each axis at most once, times a small constant; an offset, and perhaps the scalar."""
    index: object = draw(st.integers(-1, 2))
    for axis in axes:
        factor = draw(st.sampled_from([0, 1, 1, 1, -1, 2]))
        if factor:
            index = index + axis * factor
    if draw(st.booleans()) and draw(st.booleans()):
        index = index + draw(terms(scalar))
    if draw(st.integers(0, 5)) == 0:
        index = index // 2
    return index


WILD = {
    "right": lambda index, c: index >> c,
    "left": lambda index, c: index << c,
    "and": lambda index, c: index & c,
    "xor": lambda index, c: index ^ c,
    "abs": lambda index, c: rc.abs(index - c),
    "select": lambda index, c: rc.select(index < c, index + c, index - 1),
    "truncated": lambda index, c: index % c,
    "negative": lambda index, c: rc.indexmod(index, -c) + c,
    "half": lambda index, c: (index.astype("float32") * 0.5).astype("int64"),
    "floor": lambda index, c: rc.floor(index.astype("float64") / float(c)).astype("int32"),
    "itself": lambda index, c: index + index // 2,
}


@st.composite
def wild(draw: st.DrawFn, axes: list[object], scalar: object) -> object:
    """An index whose values follow from no rule on the ends of its operands."""
    index: object = draw(affine(axes, scalar)) + rc.const(0, "int64")
    axis = draw(st.sampled_from(axes))
    kind = draw(st.sampled_from([*WILD, "product", "remainder", "quotient", "narrow", "sum"]))
    constant = draw(st.integers(1, 3))
    if kind in WILD:
        return WILD[kind](index, constant)
    if kind == "product":
        return axis * draw(terms(scalar)) + draw(st.integers(-1, 1))
    if kind == "remainder":
        return (rc.const(0, "int64") + index) % constant
    if kind == "quotient":
        return (rc.const(0, "int64") + index) // constant + axis
    if kind == "narrow":
        narrow = draw(st.sampled_from(["int8", "uint8", "int32", "uint32"]))
        return (axis.astype(narrow) + scalar.astype(narrow)).astype("int64")
    return index + axis


@st.composite
def conditions(draw: st.DrawFn, axes: list[object], scalar: object) -> object:
    """A condition over the axes, the scalar and constants."""
    left = draw(affine(axes, scalar)) + rc.const(0, "int64")
    right = draw(st.sampled_from([draw(st.integers(-1, 3)), *axes, scalar.astype("int64")]))
    right = rc.const(0, "int64") + right
    operator = draw(st.sampled_from(["lt", "ge", "eq", "ne", "even", "either"]))
    if operator == "either":
        return rc.any(left < right, draw(conditions(axes, scalar)))
    found = {
        "lt": lambda: left < right,
        "ge": lambda: left >= right,
        "eq": lambda: EQ(left, right),
        "ne": lambda: NE(left, right),
        "even": lambda: EQ(left % 2, rc.const(0, "int64")),
    }[operator]()
    if draw(st.integers(0, 3)) == 0:
        return rc.all(found, draw(conditions(axes, scalar)))
    return found


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    """C over (m,), with or without a reduction, reads A and B of one symbol each."""
    n, k, m, length = (rc.var(name) for name in ("n", "k", "m", "l"))
    scalar = rc.var("s", draw(st.sampled_from([*SCALARS])))
    a, b = rc.placeholder((n,), name="A"), rc.placeholder((k, 3), name="B")
    reads: list[Read] = []
    has_guard = draw(st.booleans())

    def body(i: object, *more: object) -> object:
        axes = [(i, m), *((r, length) for r in more)]
        variables = [axis for axis, _ in axes]
        index = affine(variables, scalar)
        first = draw(index if draw(st.booleans()) else wild(variables, scalar))
        second, third = draw(index), draw(index)
        guard = draw(conditions(variables, scalar)) if has_guard else True
        reads.append(Read(axes, first, n, guard))
        reads.extend([Read(axes, second, k), Read(axes, third, rc.const(3, "int64"))])
        value = a[first]
        if has_guard:
            choose = draw(st.sampled_from([rc.if_then_else, rc.select]))
            value = choose(guard, value, rc.const(0, "float32"))
        return value + b[second, third]

    try:
        if draw(st.booleans()):
            r = rc.reduce_axis((0, length), name="r")
            output = rc.compute((m,), lambda i: rc.sum(body(i, r.var), axis=r), name="C")
        else:
            output = rc.compute((m,), body, name="C")
        rc.create_schedule(output.op)  # a read before the first row is judged here
    except UserError as error:  # out of range at all sizes
        assert "reads index" in error.what
        return Drawn([], a, [n, k, m, scalar, length], reads)
    args = [a, b, scalar, length, output]
    return Drawn(args, output, [n, k, m, scalar, length], reads)


def _sizes_of(symbol: Var) -> st.SearchStrategy[int]:
    return SCALARS[to_numpy(symbol.dtype).name] if symbol.name == "s" else SIZES


def _is_inside(drawn: Drawn, sizes: dict[Var, int]) -> bool:
    for read in drawn.reads:
        ranges = [range(evaluate_expr(extent, sizes)) for _, extent in read.axes]
        index = rc.const(0, "int64") + read.index
        for point in itertools.product(*ranges):
            at = sizes | {axis: value for (axis, _), value in zip(read.axes, point, strict=True)}
            if read.guard is not True and not evaluate_expr(read.guard, at):
                continue
            if not 0 <= evaluate_expr(index, at) < evaluate_expr(read.size, sizes):
                return False
    return True


def _arguments(func: PrimFunc, sizes: dict[Var, int]) -> list[object]:
    return [
        sizes[p]
        if isinstance(p, Var)
        else np.ones(tuple(evaluate_expr(dim, sizes) for dim in p.shape), "f4")
        for p in func.params
    ]


def _is_interpreted(func: PrimFunc, sizes: dict[Var, int]) -> bool:
    try:
        lazy = make_selects_lazy(with_fields(func, requires=()))
        interpret(lazy, _arguments(func, sizes))
    except InterpretError as error:
        assert "out of range" in error.what, error
        return False
    return True


@given(programs(), st.data())
def test_a_call_is_refused_exactly_where_an_element_is_not_there(
    drawn: Drawn, data: st.DataObject
) -> None:
    if not drawn.args:  # refused whatever the sizes are, if there is anything to compute
        sizes = {symbol: data.draw(_sizes_of(symbol), symbol.name) for symbol in drawn.symbols}
        m, length = drawn.symbols[2], drawn.symbols[4]
        assert not _is_inside(drawn, sizes | {m: sizes[m] + 1, length: sizes[length] + 1})
        return
    schedule = rc.create_schedule(drawn.output.op)
    if data.draw(st.booleans()):
        schedule[drawn.output].split(drawn.output.op.axis[0], data.draw(st.integers(1, 3)))
    if data.draw(st.booleans()):
        schedule.cache_read(drawn.args[0], "global", [drawn.output])
    func = with_entry_conditions(rc.lower(schedule, drawn.args))
    function = rc.build(func, target="interp")
    for _ in range(4):
        sizes = {symbol: data.draw(_sizes_of(symbol), symbol.name) for symbol in drawn.symbols}
        is_inside = _is_inside(drawn, sizes)
        assert _is_interpreted(func, sizes) == is_inside
        try:
            function(*_arguments(func, sizes))
            is_let_in = True
        except InterpretError:
            is_let_in = True
        except UserError:
            is_let_in = False
        assert is_let_in == is_inside, (func, sizes)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_random_computations_fulfil_what_they_require(data: st.DataObject) -> None:
    """The programs of all other property tests: none is refused at the sizes it is drawn with."""
    computation = data.draw(computations())
    schedule = data.draw(schedules(computation))
    func = with_entry_conditions(lowered_once(schedule, computation.args))
    for requirement in func.requires:
        assert is_fulfilled(requirement, computation.sizes), requirement
