import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Stmt
from refcomp.lowering.extern import reads_of_extern
from refcomp.oracle.lockstep.interpret import interpret


def _lowered():
    n = refcomp.var("n")
    a = refcomp.placeholder((n, 4), name="A")
    b = refcomp.compute((n, 4), lambda i, j: a[i, j] + 1.0, name="B")

    def body(ins, outs):
        ib = refcomp.ir_builder.create()
        ib.emit(refcomp.call_packed("tests.first", ins[0], outs[0]))
        with ib.for_range(0, n, name="i") as i:
            ib.emit(outs[1].vstore(i, ins[1][i, 2]))
        return ib.get()

    c, d = refcomp.extern([(n, 2), (n,)], [a, b], body, name="C")
    s = refcomp.create_schedule(c)
    return refcomp.lower(s, [a, c, d], "extern"), c.op


def test_the_statement_stands_between_its_producers_and_consumers(golden):
    golden("lowering/extern.txt", refcomp.print_func(_lowered()[0]))


def test_its_statements_tell_where_they_come_from():
    func, op = _lowered()
    origins = {
        item.origin.stage for item in walk(func.body) if isinstance(item, Stmt) and item.origin
    }
    assert origins == {"B", "C"}
    packed = next(item for item in walk(func.body) if type(item).__name__ == "CallPacked")
    assert packed.origin.line == op.line and packed.origin.line


def test_all_inputs_are_read():
    _, op = _lowered()
    assert [str(read.tensor.name) for read in reads_of_extern(op)] == ["A", "B"]


@pytest.mark.parametrize("is_called", [True, False])
def test_rows_that_are_longer_are_for_loops_but_not_for_functions(is_called):
    def body(ins, outs):
        ib = refcomp.ir_builder.create()
        with ib.for_range(0, 3, name="i") as i, ib.for_range(0, 5, name="j") as j:
            ib.emit(outs[0].vstore((i, j), ins[0][i, j]))
        return refcomp.call_packed("tests.any", ins[0], outs[0]) if is_called else ib.get()

    a = refcomp.placeholder((3, 5), name="A")
    b = refcomp.compute((3, 5), lambda i, j: a[i, j] + 1.0, name="B")
    c = refcomp.extern((3, 5), [b], body, name="C")
    s = refcomp.create_schedule(c)
    s[b].storage_align(b.op.axis[0], 8, 1)
    if is_called:
        with pytest.raises(UserError, match="call a function with the memory of B") as caught:
            refcomp.lower(s, [a, c])
        assert "storage_align" in caught.value.why and "B global" in caught.value.remedy
        return
    args = [np.ones((3, 5), np.float32), np.zeros((3, 5), np.float32)]
    interpret(refcomp.lower(s, [a, c]), args)
    assert (args[1] == 2).all()


def test_local_memory_of_no_elements_is_for_no_function():
    a = refcomp.placeholder((0, 5), name="A")
    b = refcomp.compute((0, 5), lambda i, j: a[i, j] + 1.0, name="B")
    call = lambda ins, outs: refcomp.call_packed("tests.any", ins[0], outs[0])  # noqa: E731
    c = refcomp.extern((0, 5), [b], call, name="C")
    s = refcomp.create_schedule(c)
    assert "tests.any" in refcomp.print_func(refcomp.lower(s, [a, c]))
    s[b].set_scope("local")
    with pytest.raises(UserError, match="call a function with the memory of B"):
        refcomp.lower(s, [a, c])
