"""Operations made anew compute the same, and what is changed on the way is changed everywhere."""

import numpy as np

import refcomp as rc
from refcomp.ir.expr import IntImm
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.oracle.tensors.rebuilt_operations import RebuiltOperations
from refcomp.te.operation import reachable_operations


class _OneMore(RebuiltOperations):
    """Every literal 2 becomes 3."""

    def visit_node(self, recurse, node):
        if isinstance(node, IntImm) and node.value == 2:
            return IntImm(3, node.dtype)
        return super().visit_node(recurse, node)


def _doubled(ins, outs):
    ib = rc.ir_builder.create()
    with ib.for_range(0, 4, name="y") as y:
        ib.emit(outs[0].vstore(y, ins[0][y] * 2))
    return ib.get()


def _computation():
    """A compute, a reduction, loops of the user and a scan, one behind the other."""
    a = rc.placeholder((4, 3), "int32", name="A")
    k = rc.reduce_axis((0, 3), "k")
    b = rc.compute((4,), lambda i: rc.sum(a[i, k] * 2, axis=k), name="B")
    c = rc.extern((4,), [b], _doubled, name="C")
    state = rc.placeholder((4,), "int32", name="state")
    init = rc.compute((1,), lambda i: c[i] * 2, name="init")
    update = rc.compute((4,), lambda i: c[i] * 2, name="U")  # does not read the state
    return a, rc.scan(init, update, state, name="S")


def _evaluated(output, given, array):
    return evaluate([output], {given: array})[0].tolist()


def test_what_is_made_anew_is_the_same_computation_of_other_operations():
    a, rows = _computation()
    made = RebuiltOperations()
    (fresh,) = made.rebuild([rows])
    assert set(reachable_operations([fresh.op])).isdisjoint(reachable_operations([rows.op]))
    array = np.arange(12, dtype=np.int32).reshape(4, 3)
    assert _evaluated(fresh, made.tensors[a], array) == _evaluated(rows, a, array)
    assert _evaluated(rows, a, array) == [8 * x for x in array.sum(axis=1)]


def test_each_part_is_visited_once():
    a, rows = _computation()
    made = _OneMore()
    (fresh,) = made.rebuild([rows])
    array = np.arange(12, dtype=np.int32).reshape(4, 3)
    wanted = [27 * x for x in array.sum(axis=1)]
    assert _evaluated(fresh, made.tensors[a], array) == wanted
