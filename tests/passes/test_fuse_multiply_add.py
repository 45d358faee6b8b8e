import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.driver.compile import compile_to_source
from refcomp.driver.pipeline import run_passes
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.oracle.compare import compare
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import fuse_multiply_add as module
from refcomp.passes.fuse_multiply_add import fuse_multiply_add
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, fuse_multiply_add)


def _fused(expr, dtype="f32"):
    text = f"func f(x: {dtype}, y: {dtype}, z: {dtype}, A: {dtype}[1] out) {{ A[0] = {expr} }}"
    func = fuse_multiply_add(parse_func(text))
    return print_func(func).splitlines()[1].strip().removeprefix("A[0] = ")


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("x * y + z", "fma(x, y, z)"),
        ("z + x * y", "fma(x, y, z)"),
        ("x * y - z", "fma(x, y, z * -1.0f32)"),
        ("z - x * y", "fma(x * -1.0f32, y, z)"),
        ("x * y + y * z", "fma(x, y, y * z)"),
        ("x * y + z * y + x", "fma(x, y, z * y) + x"),
        ("x * (y * z + x) + z", "fma(x, fma(y, z, x), z)"),
        ("x * y", "x * y"),
        ("x + y - z", "x + y - z"),
        ("x / y + z", "x / y + z"),
    ],
)
def test_table(expr, expected):
    assert _fused(expr) == expected


def test_other_types_round_each_time():
    assert _fused("x * y + z", "f64") == "fma(x, y, z)"
    for dtype in ("f16", "bf16", "i32", "i64"):
        assert _fused("x * y + z", dtype) == "x * y + z"


def test_vectors_are_fused_lane_by_lane():
    text = "func f(A: f32[4], B: f32[4] out) { B@[ramp(0, 1, 4)] = %s }"
    load = "A@[ramp(0, 1, 4)]"
    func = fuse_multiply_add(parse_func(text % f"{load} - {load} * {load}"))
    expected = f"fma({load} * broadcast(-1.0f32, 4), {load}, {load})"
    assert print_func(func).splitlines()[1].strip() == f"B@[ramp(0, 1, 4)] = {expected}"


def test_what_has_no_such_sum_is_left_alone():
    func = parse_func("func f(A: f32[4] out) { for i in range(4) { A[i] = A[i] + 1f32 } }")
    assert fuse_multiply_add(func) is func


def _product(n):
    a, b = (refcomp.placeholder((n, n), name=name) for name in "AB")
    k = refcomp.reduce_axis((0, n), name="k")
    c = refcomp.compute((n, n), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    schedule = refcomp.create_schedule(c)
    _, j = schedule[c].split(c.op.axis[1], factor=16)
    schedule[c].reorder(k, j)
    schedule[c].vectorize(j)
    return schedule, [a, b, c]


def _operands(n):
    rng = np.random.default_rng(7)
    return [rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)]


@pytest.mark.llvm
def test_without_a_licence_nothing_is_fused():
    func = refcomp.lower(*_product(32))
    plain = compile_to_source([func], "llvm").text
    assert "llvm.fma" not in plain
    with refcomp.build_options(contract=True):
        licensed = compile_to_source([func], "llvm").text
    assert "@llvm.fma.v16f32" in licensed
    assert "fmul" not in licensed
    assert compile_to_source([func], "llvm").text == plain


@pytest.mark.llvm
def test_machine_code_and_interpreter_agree_with_a_licence_too():
    n = 20
    a, b = _operands(n)
    schedule, args = _product(n)
    func = refcomp.lower(schedule, args)
    plain, licensed, interpreted = (np.zeros((n, n), np.float32) for _ in range(3))
    refcomp.build(schedule, args)(a, b, plain)
    with refcomp.build_options(contract=True):
        refcomp.build(schedule, args)(a, b, licensed)
        interpret(run_passes(func, "llvm"), [a, b, interpreted])
    np.testing.assert_array_equal(licensed, interpreted)
    assert not np.array_equal(plain, licensed)
    bound = 2 * (n + 1) ** 2 * np.abs(a).max() * np.abs(b).max() * 2.0**-24
    assert compare(licensed, plain, bound).agrees


def test_a_product_is_not_rounded_before_the_sum():
    text = "func f(x: f32, A: f32[1] out) { A[0] = x * x - 1f32 }"
    x = np.float32(1 + 2**-13)
    results = []
    for func in (parse_func(text), fuse_multiply_add(parse_func(text))):
        data = np.zeros(1, np.float32)
        interpret(func, [x, data])
        results.append(float(data[0]))
    assert results == [2**-12, 2**-12 + 2**-26]


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_sums_of_small_integers_are_the_same(drawn):
    assert_meaning_is_kept(fuse_multiply_add, *drawn, "nested")


@given(st.lists(st.floats(-8, 8, width=32), min_size=3, max_size=3))
def test_the_result_is_the_rounded_exact_one(values):
    """f64 holds the product of two f32 exactly; its sum rounds in f64, far below f32."""
    func = fuse_multiply_add(
        parse_func("func f(x: f32, y: f32, z: f32, A: f32[1] out) { A[0] = z - x * y }")
    )
    data = np.zeros(1, np.float32)
    x, y, z = (np.float32(value) for value in values)
    interpret(func, [x, y, z, data])
    exact = np.float64(z) - np.float64(x) * np.float64(y)
    assert abs(data[0] - exact) <= abs(exact) * 2.0**-24 * (1 + 2.0**-20) + 2.0**-149
