import numpy as np

from refcomp.foundation.dtype import I64
from refcomp.ir import fresh_names as module
from refcomp.ir.expr import IntImm, Let
from refcomp.ir.fresh_names import Copier, with_fresh_names
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, AtomicUpdate, For, LetStmt, block
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret

TEXT = """
func f(A: i64[n] out) {
  alloc T: i64[n + 1] {
    for j in range(n) {
      let t: i64 = j * 2 { T[j] = (let u: i64 = t + 1 in u * u) }
      atomic add T[j] with 1
      A[j] = A[j] + T[j]
    }
  }
}
"""
BINDERS = ((For, "var"), (Let, "var"), (LetStmt, "var"), (Allocate, "buffer"))


def test_a_copy_binds_names_of_its_own():
    func = parse_func(TEXT)
    copy = with_fresh_names(func.body, {})
    for binders, of in BINDERS:
        (first,) = (getattr(node, of) for node in walk(func.body) if isinstance(node, binders))
        (second,) = (getattr(node, of) for node in walk(copy) if isinstance(node, binders))
        assert first is not second
        assert first.name == second.name
    (allocation,) = (node.buffer for node in walk(copy) if isinstance(node, Allocate))
    (update,) = (node for node in walk(copy) if isinstance(node, AtomicUpdate))
    assert update.buffer is allocation


def test_two_copies_in_a_row_do_it_twice():
    func = parse_func(TEXT)
    twice = func.with_body(block([func.body, with_fresh_names(func.body, {})]))
    verify(twice, "nested")
    data = np.zeros(3, np.int64)
    interpret(twice, [data])
    assert data.tolist() == [2 * (1 + 1), 2 * (9 + 1), 2 * (25 + 1)]


def test_free_variables_are_replaced_in_shapes_too():
    func = parse_func(TEXT)
    (n,) = func.symbols
    copy = with_fresh_names(func.body, {n: IntImm(7, I64)})
    text = print_func(func.with_body(copy))
    assert "alloc T: i64[7 + 1] {" in text
    assert "range(7)" in text


def test_what_binds_nothing_and_reads_no_replaced_variable_stays_the_same_object():
    store = parse_func("func f(A: i64[n] out) { A[0] = n }").body
    assert with_fresh_names(store, {}) is store


def test_copies_share_what_is_the_same_in_all_of_them(monkeypatch):
    func = parse_func("func f(A: i64[m] out, B: i64[n]) { A[m] = B[n * n] + m }")
    m = func.symbols[0]
    copier = Copier(func.body, [m])
    visited = []
    keep = module.map_children

    def note(node, function):
        visited.append(node)
        return keep(node, function)

    monkeypatch.setattr(module, "map_children", note)
    copies = [copier.copy({m: IntImm(value, I64)}) for value in (7, 8)]
    for copy, value in zip(copies, "78", strict=True):
        assert print_func(func.with_body(copy)).splitlines()[1].strip() == (
            f"A[{value}] = B[n * n] + {value}"
        )
        assert copy.value.a is func.body.value.a
    assert visited == [func.body, func.body.value] * 2
