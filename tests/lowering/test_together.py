from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import IntImm
from refcomp.ir.printer import print_stmt
from refcomp.ir.stmt import BufferStore, Origin
from refcomp.lowering.together import store_together

_AT = (IntImm(0, I64),)


def _buffer(name):
    return Buffer(name, F32, (IntImm(1, I64),))


def test_one_store_stays_as_it_is():
    a = _buffer("A")
    store = BufferStore(a, _AT, BufferLoad(a, _AT))
    assert store_together([store]) is store


def test_several_store_when_all_values_are_known():
    a, b = _buffer("A"), _buffer("B")
    origin = Origin("A")
    swap = [
        BufferStore(a, _AT, BufferLoad(b, _AT), origin),
        BufferStore(b, _AT, BufferLoad(a, _AT), origin),
    ]
    stmt = store_together(swap)
    assert stmt.origin is origin
    lines = [line.strip() for line in print_stmt(stmt).splitlines()]
    assert lines[:4] == [
        "let A.next: f32 = B[0] {",
        "let B.next: f32 = A[0] {",
        "A[0] = A.next",
        "B[0] = B.next",
    ]
