import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.ir.expr import IfThenElseExpr, Select
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import make_selects_lazy as module
from refcomp.passes.make_selects_lazy import make_selects_lazy
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, make_selects_lazy)


def _kinds(func):
    """How many selects and lazy choices there are."""
    nodes = list(walk(func.body))
    return tuple(sum(isinstance(node, cls) for node in nodes) for cls in (Select, IfThenElseExpr))


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("A[i] = select(i < 4, B[i], 0)", (1, 0)),
        ("A[i] = select(i + 1 < n, B[i + 1], 0)", (0, 1)),
        ("A[i] = select(i < 4, 0, B[i - 1])", (0, 1)),
        ("A[i] = select(B[i] < 4, B[i], i * 2)", (1, 0)),
        ("A[i] = select(i < 4, B[B[i]], 0)", (0, 1)),  # nobody knows what B holds
        ("if (1 <= i) { A[i] = select(i < 4, B[i - 1], 0) }", (1, 0)),
        ("if (1 <= i) { A[i] = 0 } else { A[i] = select(i < 4, B[i - 1], 0) }", (0, 1)),
        ("let t: i64 = i - 1 { A[i] = select(i < 4, B[t], 0) }", (0, 1)),
        ("A[i] = (let t: i64 = i - 1 in select(1 <= i, B[t], 0))", (0, 1)),
        ("A[i] = if_then_else(1 <= i, select(i < 4, B[i - 1], 0), 0)", (1, 1)),
        # The inner one is evaluated only where the outer one chooses it, and is safe there.
        ("A[i] = select(1 <= i, select(i < 4, B[i - 1], 0), 0)", (1, 1)),
        ("A[i] = select(i < 4, select(1 <= i, B[i - 1], 0), 0)", (0, 2)),
    ],
)
def test_table(body, kinds):
    text = f"func f(A: i64[n] out, B: i64[n]) {{ for i in range(n) {{ {body} }} }}"
    func = make_selects_lazy(parse_func(text))
    verify(func, "nested")
    assert _kinds(func) == kinds


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(make_selects_lazy, *drawn, "nested")


def _shifted(n, reach):
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute(
        (n,),
        lambda i: refcomp.select(refcomp.all(i >= reach, i + reach < n), a[i - reach], a[i] * 2),
        name="B",
    )
    return refcomp.create_schedule(b), [a, b]


def _expected(data, reach):
    n = len(data)
    return np.array([data[i - reach] if reach <= i < n - reach else data[i] * 2 for i in range(n)])


@pytest.mark.search
@given(st.integers(0, 9), st.integers(0, 5))
def test_reads_guarded_by_select_are_right(n, reach):
    func = make_selects_lazy(refcomp.lower(*_shifted(n, reach)))
    data, result = np.arange(n, dtype=np.float32) + 1, np.zeros(n, np.float32)
    interpret(func, [data, result])  # it refuses what is out of range
    np.testing.assert_array_equal(result, _expected(data, reach))


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_targets_read_nothing_out_of_range(target):
    schedule, args = _shifted(37, 30_000_000)  # far from all that is mapped
    _, lanes = schedule[args[1]].split(args[1].op.axis[0], factor=8)
    schedule[args[1]].vectorize(lanes)
    module = refcomp.build(schedule, args, target=target)
    data, result = np.arange(37, dtype=np.float32), np.zeros(37, np.float32)
    module(data, result)
    np.testing.assert_array_equal(result, data * 2)
