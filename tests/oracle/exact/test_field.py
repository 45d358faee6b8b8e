"""Programs on field elements: the same value in any order, another one for any other program."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import refcomp as rc
from refcomp.driver.pipeline import run_passes
from refcomp.foundation.dtype import F32, I64, as_dtype
from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, FloatImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import ParallelRegion
from refcomp.ir.verify import find_fault
from refcomp.oracle.exact.field import P, field_dtype, tensors_to_field, to_field
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.evaluate import evaluate
from tests.strategies.funcs import runnable_funcs

X, Y = Var("x", F32), Var("y", F32)
ELEMENTS = st.integers(0, P - 1)


def fielded_func(*texts: str) -> PrimFunc:
    """The function that stores what each of `texts`, expressions of x and y, is in the field."""
    stores = " ".join(f"B[{k}] = {text}" for k, text in enumerate(texts))
    head = f"func f(B: f32[{len(texts)}] out, x: f32, y: f32)"
    func = to_field(parse_func(f"{head} {{ {stores} }}"))
    assert find_fault(func, "nested") is None
    return func


def values(func: PrimFunc, x: int, y: int) -> list[int]:
    """What `func` stores."""
    result = np.zeros(func.buffers[0].shape[0].value, np.int64)
    interpret(func, [result, x, y])
    return result.tolist()


def value(text: str, x: int = 0, y: int = 0) -> int:
    """What `text` is in the field."""
    return values(fielded_func(text), x, y)[0]


ARITHMETIC = fielded_func(
    *("x + y", "x - y", "x * y", "fma(x, y, x)", "x / y", "max(x, y)", "f32(f16(x))")
)
QUOTIENTS = fielded_func("x * 0.5f32 * 2.0f32", "x / 3.0f32 * 3.0f32", "x * -0.75f32")
FUNCTIONS = fielded_func("exp(x)", "log(x)", "pow(x, y)", "pow(y, x)", "exp(x)")


@pytest.mark.search
@given(ELEMENTS, ELEMENTS)
def test_arithmetic_is_that_of_the_field(x, y):
    quotient = x * pow(y, -1, P) % P if y else 0
    expected = [(x + y) % P, (x - y) % P, x * y % P, (x * y + x) % P, quotient, max(x, y), x]
    assert values(ARITHMETIC, x, y) == expected


@given(ELEMENTS)
def test_constants_are_exact_quotients(x):
    assert values(QUOTIENTS, x, 0) == [x, x, -3 * x * pow(4, -1, P) % P]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("function", [rc.min_value, rc.max_value])
def test_the_identities_of_min_and_max_are_neutral(dtype, function):
    k = rc.reduce_axis((0, 4), name="k")
    a = rc.placeholder((4,), dtype, "A")
    reduce = rc.max if function is rc.min_value else rc.min
    b = rc.compute((1,), lambda _: reduce(a[k], axis=k), name="B")
    (fielded,), places = tensors_to_field([b])
    given_ = np.array([5, 0, P - 1, 7])
    wanted = given_.max() if reduce is rc.max else given_.min()
    assert evaluate([fielded], {places[a]: given_})[0] == [wanted]
    limit = function(as_dtype(dtype)) if callable(function) else None
    assert isinstance(limit, Expr)


@given(ELEMENTS, ELEMENTS)
def test_other_functions_depend_on_name_operands_and_order(x, y):
    if x == y:
        return
    exp, log, power, swapped, again = values(FUNCTIONS, x, y)
    assert exp == again
    assert exp != log
    assert power != swapped
    assert 0 <= exp < P


def test_truth_and_integers():
    assert value("select(x < y, 1.0f32, 2.0f32)", 3, 4) == 1
    assert value("select(isnan(x), 1.0f32, 2.0f32)", 3) == 2
    assert value("f32(i64(x) + 7)", 3) == 10
    assert value("f32(-1)") == P - 1


def test_what_looks_at_bits_is_refused():
    with pytest.raises(Unsupported, match="float_to_bits looks at the bits of a float") as caught:
        value("f32(float_to_bits(x))")
    assert "before the passes" in caught.value.remedy


@pytest.mark.search
@given(runnable_funcs("nested", exact=False))
def test_no_float_is_left_and_integers_stay(drawn):
    func = drawn[0]
    try:
        fielded = to_field(func)
    except Unsupported:
        reject()
    assert find_fault(fielded, "nested") is None
    for item in walk(fielded.body):
        assert not (isinstance(item, Expr) and item.dtype.is_float)
    kept = [p for p in func.params if not p.dtype.is_float]
    assert [p for p in fielded.params if p in set(kept)] == kept


def test_dtypes():
    assert field_dtype(F32) == I64
    assert field_dtype(as_dtype("bf16x4")) == I64.with_lanes(4)
    assert field_dtype(as_dtype("u8")) == as_dtype("u8")


def test_vectors_are_computed_lane_by_lane():
    lanes = ir.Mul(ir.Broadcast(X, 4), ir.Broadcast(FloatImm(0.5, F32), 4))
    assert fielded_func("x").params[1].dtype == I64
    assert lanes.dtype.lanes == 4
    text = (
        "func f(A: f32[4], B: f32[4] out) { B@[ramp(0, 1, 4)] = "
        "A@[ramp(0, 1, 4)] * broadcast(0.5f32, 4) / broadcast(4.0f32, 4) + A@[ramp(3, -1, 4)] }"
    )
    a, b = np.arange(4), np.zeros(4, np.int64)
    interpret(to_field(parse_func(text)), [a, b])
    assert b.tolist() == [(x * pow(8, -1, P) + 3 - x) % P for x in range(4)]


def test_parallel_regions_capture_what_takes_the_place_of_floats():
    a, k = rc.placeholder((4,), name="A"), rc.placeholder((1,), name="x")
    b = rc.compute((4,), lambda i: a[i] * k[0], name="B")
    s = rc.create_schedule(b)
    s[b].parallel(b.op.axis[0])
    func = run_passes(rc.lower(s, [a, k, b]), "llvm")
    assert any(isinstance(node, ParallelRegion) for node in walk(func))
    found = np.zeros(4, np.int64)
    interpret(to_field(func), [np.arange(4), np.array([5]), found])
    assert found.tolist() == [0, 5, 10, 15]


def test_schedules_and_tensor_expressions_agree():
    n = rc.var("n")
    a, k = rc.placeholder((n, 8), name="A"), rc.reduce_axis((0, 8), name="k")
    c = rc.compute((n,), lambda i: rc.sum(a[i, k] / 3.0, axis=k), name="C")
    d = rc.compute((n,), lambda i: rc.exp(c[i]) * c[i], name="D")
    s = rc.create_schedule(d)
    s[c].reorder(*reversed(s[c].split(k, factor=3)))
    s[c].compute_at(s[d], d.op.axis[0])
    func = to_field(rc.lower(s, [a, d]))
    (fielded,), places = tensors_to_field([d])
    given_ = np.random.default_rng(0).integers(0, P, (5, 8))
    found = np.zeros(5, np.int64)
    interpret(func, [given_, found])
    assert (found == evaluate([fielded], {places[a]: given_})[0]).all()
    assert evaluate_expr(Y - Y, {Y: 1}) == 0
