"""HybridOp is an extern operation that knows its loops, and keeps them when it is rebuilt."""

from dataclasses import replace

import refcomp
from refcomp.hybrid import script
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.operation import ExternOp


@script
def running(a):
    c = output_tensor((8,), "float32")  # noqa: F821
    for i in range(1, 8):
        c[i] = a[i] + c[i - 1]
    return c


def test_a_hybrid_function_makes_an_operation_with_loops():
    op = running(refcomp.placeholder((8,), name="a")).op
    assert isinstance(op, HybridOp)
    assert isinstance(op, ExternOp)
    assert [(axis.name, str(axis.kind)) for axis in op.axis] == [("i", "ordered")]
    assert op.conflicts == ("no index of c keeps apart what they access",)
    assert replace(op).conflicts == op.conflicts
