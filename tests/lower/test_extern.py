import refcomp
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Stmt
from refcomp.lower.extern import reads_of_extern


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
    golden("lower/extern.txt", refcomp.print_func(_lowered()[0]))


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
