"""Vectors cut to lengths that OpenCL C has."""

import numpy as np
import pytest
from hypothesis import given

from refcomp.ir.expr import Expr
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import Origin, Store
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import fit_vector_lanes as module
from refcomp.passes.fit_vector_lanes import fit_vector_lanes
from refcomp.passes.vectorize_loops import vectorize_loops
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs
from tests.strategies.vectorized_loops import vectorized_loops


def test_docstring():
    assert_docstring_holds(module, fit_vector_lanes)


def _lines(text, params="A: i64[n], B: i64[n] out, m: i64"):
    func = fit_vector_lanes(parse_func(f"func f({params}) {{ {text} }}"))
    verify(func, "flat")
    assert _lengths(func) <= {1, 2, 4, 8, 16}
    return [line.strip() for line in print_func(func).splitlines()[1:-1]]


def _lengths(func):
    return {node.dtype.lanes for node in walk(func.body) if isinstance(node, Expr)}


@pytest.mark.parametrize(
    ("lanes", "pieces"),
    [(3, [2, 1]), (7, [4, 2, 1]), (32, [16, 16]), (100, [16] * 6 + [4]), (17, [16, 1])],
)
def test_lengths(lanes, pieces):
    lines = _lines(f"B@[ramp(m, 1, {lanes})] = A@[ramp(0, 1, {lanes})]")
    found = [int(line.split("ramp(")[1].split(", 1, ")[1].split(")")[0]) if "ramp" in line else 1
             for line in lines]  # fmt: skip
    assert found == pieces


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_what_fits_stays_the_same(lanes):
    index = "m" if lanes == 1 else f"ramp(m, 1, {lanes})"
    func = parse_func(f"func f(A: i64[n], B: i64[n] out, m: i64) {{ B@[{index}] = A@[{index}] }}")
    assert fit_vector_lanes(func) is func


def test_masks_casts_calls_and_choices():
    lines = _lines(
        "B@[ramp(0, 1, 3)] = select(ramp(m, 1, 3) < broadcast(2, 3), "
        "i64x3(f32x3(A@[ramp(0, 2, 3)])), if_then_else(m < 3, abs(A@[ramp(0, 1, 3)]), "
        "A@[ramp(1, 1, 3) if ramp(m, 1, 3) <"
        " broadcast(2, 3)])) if broadcast(m, 3) < ramp(0, 1, 3)"
    )
    assert lines == [
        "B@[ramp(0, 1, 2)] = select(ramp(m, 1, 2) < broadcast(2, 2), "
        "i64x2(f32x2(A@[ramp(0, 2, 2)])), if_then_else(m < 3, abs(A@[ramp(0, 1, 2)]), "
        "A@[ramp(1, 1, 2) if ramp(m, 1, 2) < broadcast(2, 2)])) "
        "if broadcast(m, 2) < ramp(0, 1, 2)",
        "B@[2] = select(m + 2 < 2, i64(f32(A@[4])), if_then_else(m < 3, abs(A@[2]), "
        "A@[3 if m + 2 < 2])) if m < 2",
    ]


def test_lets_become_one_for_each_piece():
    lines = _lines(
        "let v: i64x6 = A@[ramp(0, 1, 6)] {"
        " B@[ramp(0, 1, 6)] = v + (let w: i64x6 = v * v in w + w) }"
    )
    assert lines[:2] == [
        "let v: i64x4 = A@[ramp(0, 1, 4)] {",
        "let v_1: i64x2 = A@[ramp(4, 1, 2)] {",
    ]
    assert lines[2:4] == [
        "B@[ramp(0, 1, 4)] = v + (let w: i64x4 = v * v in w + w)",
        "B@[ramp(4, 1, 2)] = v_1 + (let w: i64x2 = v_1 * v_1 in w + w)",
    ]


def test_pieces_are_read_before_any_is_written():
    func = parse_func("func f(B: i64[7] out) { B@[ramp(1, 1, 6)] = B@[ramp(0, 1, 6)] }")
    after = fit_vector_lanes(func)
    verify(after, "flat")
    data = np.arange(7)
    interpret(after, [data])
    assert data.tolist() == [0, 0, 1, 2, 3, 4, 5]


def test_origins_are_kept():
    func = parse_func("func f(B: i64[n] out) { B@[ramp(0, 1, 3)] = broadcast(1, 3) }")
    origin = Origin("B", "i", "vectorize")
    after = fit_vector_lanes(func.with_body(with_fields(func.body, origin=origin)))
    stores = [node for node in walk(after.body) if isinstance(node, Store)]
    assert [store.origin for store in stores] == [origin, origin]


@pytest.mark.search
@given(runnable_funcs("flat"))
def test_functions_of_all_kinds(drawn):
    assert _lengths(fit_vector_lanes(drawn[0])) <= {1, 2, 4, 8, 16}
    assert_meaning_is_kept(fit_vector_lanes, *drawn, "flat")


@pytest.mark.search
@given(vectorized_loops())
def test_what_vectorizing_makes(text):
    wide = parse_func(text.replace("range(4) vectorized", "range(3) vectorized"))
    after = fit_vector_lanes(vectorize_loops(wide))
    verify(after, "flat")
    assert _lengths(after) <= {1, 2}
