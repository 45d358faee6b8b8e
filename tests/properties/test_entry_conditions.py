"""Calls are refused at entry exactly where an element is read that is not there.

Random programs read tensors of independent sizes by affine indices, through stages that are
inlined, attached or computed whole. A plain walk over all points is the judge; the interpreter, on
the same function without what it requires, has to agree with it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import refcomp as rc
from refcomp.entry_conditions import with_entry_conditions
from refcomp.errors import UserError
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import with_fields
from refcomp.oracle.failure import InterpretError
from refcomp.oracle.interpret import evaluate_expr, interpret
from tests.strategies.computes import computations
from tests.strategies.schedules import schedules

SIZES = st.integers(0, 4)


@dataclass
class Drawn:
    """A program, and each read of it: the axes' extents, the index, and the size read from."""

    args: list[object]
    output: rc.Tensor
    symbols: list[Var]
    reads: list[tuple[list[tuple[Var, object]], object, object]] = field(default_factory=list)


@st.composite
def affine(draw: st.DrawFn, axes: list[object], scalar: object) -> object:
    """Each axis at most once, times a small constant; an offset, and perhaps the scalar."""
    index: object = draw(st.integers(-1, 2))
    for axis in axes:
        factor = draw(st.sampled_from([0, 1, 1, 1, -1, 2]))
        if factor:
            index = index + axis * factor
    if draw(st.booleans()) and draw(st.booleans()):
        index = index + scalar
    if draw(st.integers(0, 5)) == 0:
        index = index // 2
    return index


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    """C over (m,), with or without a reduction, reads A and B of one symbol each."""
    n, k, m, scalar, length = (rc.var(name) for name in ("n", "k", "m", "s", "l"))
    a, b = rc.placeholder((n,), name="A"), rc.placeholder((k, 3), name="B")
    reads: list[tuple[list[tuple[Var, object]], object, object]] = []

    def body(i: object, *more: object) -> object:
        axes = [(i, m), *((r, length) for r in more)]
        variables = [axis for axis, _ in axes]
        first = draw(affine(variables, scalar))
        second, third = draw(affine(variables, scalar)), draw(affine(variables, scalar))
        reads.extend([(axes, first, n), (axes, second, k), (axes, third, rc.const(3, "int64"))])
        return a[first] + b[second, third]

    try:
        if draw(st.booleans()):
            r = rc.reduce_axis((0, length), name="r")
            output = rc.compute((m,), lambda i: rc.sum(body(i, r.var), axis=r), name="C")
        else:
            output = rc.compute((m,), body, name="C")
    except UserError as error:  # out of range at all sizes
        assert "reads index" in error.what
        return Drawn([], a, [])
    return Drawn([a, b, scalar, length, output], output, [n, k, m, scalar, length], reads)


def _is_inside(drawn: Drawn, sizes: dict[Var, int]) -> bool:
    for axes, index, size in drawn.reads:
        ranges = [range(evaluate_expr(extent, sizes)) for _, extent in axes]
        for point in itertools.product(*ranges):
            at = sizes | {axis: value for (axis, _), value in zip(axes, point, strict=True)}
            if (
                not 0
                <= evaluate_expr(rc.const(0, "int64") + index, at)
                < evaluate_expr(size, sizes)
            ):
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
        interpret(with_fields(func, requires=()), _arguments(func, sizes))
    except InterpretError as error:
        assert "out of range" in error.what, error
        return False
    return True


@given(programs(), st.data())
def test_a_call_is_refused_exactly_where_an_element_is_not_there(
    drawn: Drawn, data: st.DataObject
) -> None:
    if not drawn.args:
        return
    schedule = rc.create_schedule(drawn.output.op)
    if data.draw(st.booleans()):
        schedule[drawn.output].split(drawn.output.op.axis[0], data.draw(st.integers(1, 3)))
    if data.draw(st.booleans()):
        schedule.cache_read(drawn.args[0], "global", [drawn.output])
    func = with_entry_conditions(rc.lower(schedule, drawn.args))
    function = rc.build(func, target="interp")
    for _ in range(4):
        sizes = {symbol: data.draw(SIZES, symbol.name) for symbol in drawn.symbols}
        is_inside = _is_inside(drawn, sizes)
        assert _is_interpreted(func, sizes) == is_inside
        try:
            function(*_arguments(func, sizes))
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
    func = with_entry_conditions(rc.lower(schedule, computation.args))
    for requirement in func.requires:
        assert evaluate_expr(requirement.condition, computation.sizes), requirement
