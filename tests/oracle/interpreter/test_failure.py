from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.promotion import const
from refcomp.ir.stmt import BufferStore, For, Origin
from refcomp.oracle.interpreter.failure import describe

A, INDEX = Buffer("A", F32, (IntImm(4, I64),)), Var("i", I64)


def test_a_statement_is_described_by_its_line_its_origin_and_the_variables():
    store = BufferStore(A, (INDEX,), const(0.0), Origin("A", "i"))
    assert describe(store, {INDEX: 3}) == "A[i] = 0.0f32 (stage A, axis i) with i = 3"


def test_the_primitive_that_made_a_loop_is_told():
    origins = {INDEX: Origin("A", "i.inner", "split", "f.py:3")}
    store = BufferStore(A, (INDEX,), const(0.0))
    assert describe(store, {INDEX: 3}, origins) == "A[i] = 0.0f32 with i = 3 (by split, at f.py:3)"
    assert describe(store, {INDEX: 3}, {INDEX: Origin("A", "i")}) == "A[i] = 0.0f32 with i = 3"


def test_of_what_a_statement_holds_only_the_first_line_is_shown():
    loop = For(
        INDEX, IntImm(0, I64), IntImm(4, I64), "serial", BufferStore(A, (INDEX,), const(0.0))
    )
    assert describe(loop, {}) == "for i in range(4) {"
