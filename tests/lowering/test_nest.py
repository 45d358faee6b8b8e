import numpy as np
import pytest

import refcomp
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BufferStore, For, IfThenElse, LetStmt
from refcomp.oracle.lockstep.interpret import interpret


def _count(func, cls):
    return sum(isinstance(node, cls) for node in walk(func))


def _loops(func):
    return [node.var.name for node in walk(func) if isinstance(node, For)]


def _elementwise(n):
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1.0, name="B")
    return refcomp.create_schedule(b.op), a, b


def _matmul(n, m, p):
    a, b = refcomp.placeholder((n, p), name="A"), refcomp.placeholder((p, m), name="B")
    k = refcomp.reduce_axis((0, p), "k")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    return refcomp.create_schedule(c.op), a, b, c, k


@pytest.mark.parametrize(("extent", "guards"), [(16, 0), (15, 1), (1, 1), (4, 0)])
def test_only_tails_are_guarded(extent, guards):
    s, a, b = _elementwise(extent)
    s[b].split(b.op.axis[0], factor=4)
    assert _count(refcomp.lower(s, [a, b]), IfThenElse) == guards


def test_full_tiles_of_a_symbolic_extent_carry_no_guard():
    n = refcomp.var("n")
    s, a, b = _elementwise(n * 4)
    s[b].split(b.op.axis[0], factor=4)
    assert _count(refcomp.lower(s, [a, b, n]), IfThenElse) == 0


def test_fused_loops_need_no_guard_and_give_back_their_indices(golden):
    s, a, b, c, _ = _matmul(refcomp.var("n"), 6, 4)
    s[c].fuse(*c.op.axis)
    func = refcomp.lower(s, [a, b, c])
    assert _count(func, IfThenElse) == 0
    golden("lowering/fused.txt", refcomp.print_func(func))


def test_a_split_of_a_split_is_guarded_where_iterations_would_overlap():
    s, a, b = _elementwise(12)
    _, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].split(inner, factor=3)  # 3 does not divide 4: the inner loops visit 0 .. 5
    assert _count(refcomp.lower(s, [a, b]), IfThenElse) == 1


def test_initialisation_stands_inside_the_loops_outside_the_reduction(golden):
    s, a, b, c, k = _matmul(8, 8, 8)
    i, j = c.op.axis
    s[c].reorder(i, k, j)
    func = refcomp.lower(s, [a, b, c])
    assert _loops(func) == ["i", "j.init", "k", "j"]
    golden("lowering/reduction.txt", refcomp.print_func(func))


def test_tiled_matmul_with_tails(golden):
    s, a, b, c, k = _matmul(10, 9, 7)
    i_outer, j_outer, i_inner, j_inner = s[c].tile(*c.op.axis, 4, 4)
    k_outer, k_inner = s[c].split(k, factor=2)
    s[c].reorder(i_outer, j_outer, k_outer, i_inner, k_inner, j_inner)
    golden("lowering/tiled_matmul.txt", refcomp.print_func(refcomp.lower(s, [a, b, c])))


def test_a_reduction_that_begins_elsewhere(golden):
    a = refcomp.placeholder((4, 10), name="A")
    k = refcomp.reduce_axis((2, 9), "k")
    b = refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    s = refcomp.create_schedule(b.op)
    s[b].split(k, factor=4)
    golden("lowering/reduction_from_two.txt", refcomp.print_func(refcomp.lower(s, [a, b])))


def test_the_guard_of_an_empty_reduction_does_not_keep_the_initialisation_out():
    a = refcomp.placeholder((1, 0), name="A")
    k = refcomp.reduce_axis((0, 0), "k")
    b = refcomp.compute((1,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    for options in ({"factor": 3}, {"nparts": 2}):
        s = refcomp.create_schedule(b.op)
        s[b].split(k, **options)
        out = np.full(1, 77, np.float32)
        interpret(refcomp.lower(s, [a, b]), [np.zeros((1, 0), np.float32), out])
        assert out[0] == 0


def test_a_condition_guards_the_update_only():
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    b = refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], axis=k, where=a[i, k] > 0), name="B")
    func = refcomp.lower(refcomp.create_schedule(b.op), [a, b])
    (guard,) = [node for node in walk(func) if isinstance(node, IfThenElse)]
    assert isinstance(guard.then_case, BufferStore) and guard.else_case is None
    assert _count(func, BufferStore) == 2


def test_tuple_reductions_compute_all_values_before_storing_any():
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    times = refcomp.comm_reducer(
        lambda x, y: (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]), lambda *t: (1, 0)
    )
    p, q = refcomp.compute((4,), lambda i: times((a[i, k], a[i, k]), axis=k), name="P")
    func = refcomp.lower(refcomp.create_schedule(p.op), [a, p, q])
    assert _count(func, LetStmt) == 2


def test_statements_tell_where_they_come_from():
    s, a, b = _elementwise(16)
    s[b].split(b.op.axis[0], factor=4)
    func = refcomp.lower(s, [a, b])
    origins = [n.origin for n in walk(func) if isinstance(n, For | BufferStore)]
    assert [(o.stage, o.axis, o.primitive) for o in origins] == [
        ("B", "i.outer", "split"),
        ("B", "i.inner", "split"),
        ("B", "", ""),
    ]
    assert all(o.line.startswith(__file__) for o in origins)
