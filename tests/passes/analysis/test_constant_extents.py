import pytest

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.stmt import Block, For, Origin
from refcomp.passes.analysis.constant_extents import constant_extent


def _loop(extent, kind="vectorized"):
    origin = Origin("B", "j", "vectorize", "model.py:3")
    return For(Var("j", I64), IntImm(0, I64), extent, kind, Block(()), origin)


@pytest.mark.parametrize("extent", [0, 1, 8])
def test_constants(extent):
    assert constant_extent(_loop(IntImm(extent, I64))) == extent


def test_no_constant():
    with pytest.raises(UserError) as caught:
        constant_extent(_loop(Var("n", I64) + 1))
    assert str(caught.value).splitlines() == [
        "the extent of the vectorized loop j, n + 1, is not a constant",
        "  --> model.py:3 (vectorized here)",
        "  where: stage B, axis j, by vectorize",
        "  why: a loop is vectorized by writing out all of its iterations",
        "  what to do: split the axis by a constant factor and use the inner axis, "
        "or give the shape as a constant",
    ]


def test_negative():
    with pytest.raises(UserError, match="extent of the unrolled loop j, -4, is negative"):
        constant_extent(_loop(IntImm(-4, I64), "unrolled"))
