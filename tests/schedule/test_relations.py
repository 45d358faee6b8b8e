import pytest

import refcomp
from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import FloorDiv, FloorMod, IntImm
from refcomp.ir.structure import structurally_equal
from refcomp.schedule.relations import Fuse, ceil_div, split_extents
from refcomp.te.tensor import DATA_PARALLEL, axis


@pytest.mark.parametrize(
    ("extent", "factor", "nparts", "expected"),
    [
        (16, 4, None, (4, 4)),
        (10, 4, None, (3, 4)),
        (3, 8, None, (1, 8)),
        (0, 4, None, (0, 4)),
        (10, None, 4, (4, 3)),
        (3, None, 8, (8, 1)),
    ],
)
def test_extents_of_a_split(extent, factor, nparts, expected):
    outer, inner = split_extents(IntImm(extent, refcomp.as_dtype("i64")), factor, nparts)
    assert (outer.value, inner.value) == expected


def test_symbolic_extents_stay_symbolic():
    n = refcomp.var("n")
    outer, inner = split_extents(n, 4, None)
    assert inner.value == 4 and outer == (n + 3) // 4
    assert ceil_div(n * 4, 4) == n


@pytest.mark.parametrize("divisor", [1, 2, 16])
@pytest.mark.parametrize("extent", [refcomp.var("n"), IntImm(10, I64), IntImm(0, I64)])
def test_a_quotient_that_is_not_simplified_is_simple_already(extent, divisor):
    rounded_up = FloorDiv(extent + (divisor - 1), IntImm(divisor, I64))
    assert structurally_equal(ceil_div(extent, divisor), simplify(rounded_up))


def test_indices_of_a_fused_axis():
    outer, inner = (axis(name, 0, 5, DATA_PARALLEL) for name in "ij")
    fused = axis("f", 0, 25, DATA_PARALLEL)
    i, j = Fuse(outer, inner, fused).indices(fused.var, inner.extent)
    assert isinstance(i, FloorDiv) and isinstance(j, FloorMod)
