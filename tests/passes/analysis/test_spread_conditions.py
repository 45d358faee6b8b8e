"""Conditions at the statements below them: the same meaning, with room for barriers."""

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Barrier, BufferStore, For, IfThenElse, LetStmt, Origin
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.analysis.spread_conditions import read_first, spread


def _spread(text):
    func = parse_func(f"func f(A: i64[8] out, B: i64[8] out, m: i64) {{ {text} }}")
    after = func.with_body(spread(func.body))
    verify(after, "nested")
    return func, after


def _guarded(func):
    return [type(n.then_case) for n in walk(func.body) if isinstance(n, IfThenElse)]


@pytest.mark.parametrize(
    "text",
    [
        "if (m < 3) { A[0] = 1 B[0] = 2 }",
        "if (m < 3) { A[0] = 1 B[0] = 2 } else { A[1] = m B[1] = m }",
        "if (m < 3) { for i in range(m) { A[i] = B[i] B[i + 1] = A[i] } }",
        "if (m < 3) { for i in range(B[m]) { A[i] = 1 } }",  # B[m] is out of range when m >= 8
        "if (m < 3) { let t: i64 = B[m] { A[t] = 1 B[0] = t } }",
        "if (m < 3) { if (m < 1) { A[0] = 1 } else { B[0] = 1 } }",
        "if (m < 3) { if (B[m] < 2) { A[0] = 1 B[m] = 5 B[m + 1] = 6 } else { B[0] = 1 } }",
        "if (A[0] < 3) { A[0] = 9 A[1] = 8 } else { A[0] = 0 B[2] = 3 }",
        "if (m < 3) { alloc L: i64[2] local { L[0] = m A[0] = L[0] } }",
    ],
)
@pytest.mark.parametrize("m", [0, 2, 3, 40])
def test_the_meaning_is_kept_and_only_stores_are_guarded(text, m):
    func, after = _spread(text)
    assert set(_guarded(after)) == {BufferStore}
    results = []
    for version in (func, after):
        a, b = np.arange(8), np.arange(8) * 3 % 5
        interpret(version, [a, b, m])
        results.append((a.tolist(), b.tolist()))
    assert results[0] == results[1]


def test_barriers_and_loops_come_out_of_conditions():
    func = parse_func("""
    func f(A: i64[8] out) {
      for t in range(8) threadIdx.x {
        if (t < 4) { for i in range(2) { A[t] = i barrier A[t + 4] = i } }
      }
    }
    """)
    after = func.with_body(type(func.body)(*_loop_fields(func.body), spread(func.body.body)))
    verify(after, "nested")
    inside = [n for n in walk(after.body) if isinstance(n, IfThenElse)]
    assert not any(isinstance(n, Barrier | For) for guard in inside for n in walk(guard))


def _loop_fields(loop):
    return loop.var, loop.minimum, loop.extent, loop.kind


def test_what_a_statement_reads_is_named_before_it():
    func = parse_func("func f(A: i64[8] out, x: i64) { A[A[0]] = A[1] + x }")
    after = func.with_body(read_first(func.body))
    verify(after, "nested")
    assert print_func(after).splitlines()[1:4] == [
        "  let A.read: i64 = A[0] {",
        "    let A.read_1: i64 = A[1] + x {",
        "      A[A.read] = A.read_1",
    ]
    update = parse_func("func f(A: i64[8] out) { atomic add A[0] with A[1] }").body
    assert isinstance(read_first(update), LetStmt)


def test_origins_are_kept():
    func = parse_func("func f(A: i64[8] out, m: i64) { if (m < 3) { A[0] = 1 A[1] = 2 } }")
    origin = Origin("A", "i")
    branch = IfThenElse(func.body.condition, func.body.then_case, None, origin)
    found = [n.origin for n in walk(spread(branch)) if isinstance(n, IfThenElse)]
    assert found == [origin, origin]
