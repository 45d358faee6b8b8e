"""That the values are right is tested where points are: of tensors, and of threads in step."""

from refcomp.ir import expr as ir
from refcomp.oracle.tensors import arrays
from refcomp.oracle.tensors.elementwise import ELEMENTWISE


def test_every_operator_has_its_case():
    assert set(arrays.OPERATORS) < set(ELEMENTWISE)
    assert set(ELEMENTWISE) - set(arrays.OPERATORS) == {
        ir.Cast,
        ir.Not,
        ir.Select,
        ir.Call,
        ir.PureExtern,
    }
