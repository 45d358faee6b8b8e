import numpy as np
import pytest
from hypothesis import given

import refcomp
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import Var
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import For
from refcomp.ir.verify import verify
from refcomp.passes import narrow_index_types as module
from refcomp.passes.narrow_index_types import narrow_index_types
from refcomp.passes.outline_parallel import outline_parallel
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, narrow_index_types)


def _narrowed(body, params="A: f32[n] out, B: f32[m], s: i64"):
    func = narrow_index_types(parse_func(f"func f({params}) {{ {body} }}"))
    verify(func, "flat")
    return " ".join(line.strip() for line in print_func(func).splitlines()[1:-1])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "for i in range(9) { A@[i] = B@[i] }",
            "for i: i32 in range(9i32) { A@[i] = B@[i] }",
        ),
        (
            "for i in range(9) { A@[ramp(i * 4, 1, 4)] = B@[ramp(i * 4, 1, 4) if "
            "ramp(i, 1, 4) < broadcast(7, 4)] }",
            "for i: i32 in range(9i32) { A@[ramp(i * 4i32, 1i32, 4)] = "
            "B@[ramp(i * 4i32, 1i32, 4) if ramp(i, 1i32, 4) < broadcast(7i32, 4)] }",
        ),
        (
            "for i in range(n) { for j in range(4) { A@[i * 4 + j] = 0f32 } }",  # n may be large
            "for i in range(n) { for j: i32 in range(4i32) { A@[i * 4 + i64(j)] = 0.0f32 } }",
        ),
        (
            "for i in range(s) { if (0 <= i and i < 100) { A@[i + 1] = 0f32 } }",
            "for i in range(s) { if (0 <= i and i < 100) { A@[i32(i) + 1i32] = 0.0f32 } }",
        ),
        (
            "for i in range(100000) { let t: i64 = i * 20000 { A@[t] = 0f32 } }",
            "for i: i32 in range(100000i32) { let t: i32 = i * 20000i32 { A@[t] = 0.0f32 } }",
        ),
        (
            "for i in range(100000) { let t: i64 = i * 30000 { A@[t] = 0f32 } }",  # 3e9
            "for i: i32 in range(100000i32) { let t: i64 = i64(i) * 30000 { A@[t] = 0.0f32 } }",
        ),
        (
            "for i in range(9) { A@[i] = f32(i % 4 + s) }",
            "for i: i32 in range(9i32) { A@[i] = f32(i64(i % 4i32) + s) }",
        ),
    ],
)
def test_table(body, expected):
    assert _narrowed(body) == expected


def test_the_value_behind_the_last_must_fit_too():
    least = "for i in range({}, extent=1) {{ A@[0] = f32(i) }}"
    assert "i: i32" in _narrowed(least.format(2**31 - 2))
    assert "i: i32" not in _narrowed(least.format(2**31 - 1))
    assert "i: i32" in _narrowed(least.format(-(2**31)))


def test_threads_keep_their_variables():
    text = _narrowed(
        "for b in range(4) blockIdx.x { for t in range(8) threadIdx.x { A@[b * 8 + t] = 0f32 } }"
    )
    assert "for b in range(4) blockIdx.x { for t in range(8) threadIdx.x {" in text
    assert "A@[i32(b) * 8i32 + i32(t)] = 0.0f32" in text


def test_regions_capture_the_narrow_variable():
    func = parse_func(
        """
        func f(A: f32[90] out) {
          for k in range(9) { for i in range(10) parallel { A@[k * 10 + i] = f32(k) } }
        }
        """
    )
    func = narrow_index_types(outline_parallel(func))
    verify(func, "flat")
    assert "(k, A)" in print_func(func) or "(A, k)" in print_func(func)
    assert_meaning_is_kept(narrow_index_types, outline_parallel(func), {}, "flat")


def test_what_cannot_be_narrowed_is_left_alone():
    func = parse_func("func f(A: f32[n] out) { for i in range(n) { A@[i] = f32(i) } }")
    assert narrow_index_types(func) is func


def test_nothing_that_is_no_index_changes_its_type():
    func = narrow_index_types(
        parse_func("func f(A: i64[9] out) { for i in range(9) { A@[i] = i * i } }")
    )
    (loop,) = (node for node in walk(func.body) if isinstance(node, For))
    assert loop.body.value.dtype == I64
    assert not any(isinstance(node, Var) and node.dtype == I64 for node in walk(func.body))


@pytest.mark.search
@given(runnable_funcs("flat"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(narrow_index_types, *drawn, "flat")


@pytest.mark.llvm
@pytest.mark.parametrize("rows", [8, 9])
def test_machine_code_is_right_with_narrow_indices(rows):
    a = refcomp.placeholder((rows, 20), name="A")
    b = refcomp.compute((rows, 20), lambda i, j: a[i, j] * 2 + i, name="B")
    schedule = refcomp.create_schedule(b)
    outer, _, _, lanes = schedule[b].tile(*b.op.axis, 4, 8)
    schedule[b].parallel(outer)
    schedule[b].vectorize(lanes)
    data = np.arange(rows * 20, dtype=np.float32).reshape(rows, 20)
    result = np.zeros_like(data)
    with refcomp.build_options(narrow_indices=True):
        module = refcomp.build(schedule, [a, b])
    module(data, result)
    np.testing.assert_array_equal(result, data * 2 + np.arange(rows)[:, None])
    assert "icmp slt i32" in module.get_source("llvm")
