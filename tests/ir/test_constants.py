"""Constants have Python values, all other expressions none."""

import math

import pytest

from refcomp.foundation.dtype import BOOL, F32, I64
from refcomp.ir.constants import as_constant, as_int, as_ints, element_count
from refcomp.ir.expr import Add, Broadcast, FloatImm, IntImm, Var

N = Var("n", I64)
THREE = IntImm(3, I64)


@pytest.mark.parametrize(
    ("expr", "constant", "integer"),
    [
        (THREE, 3, 3),
        (IntImm(1, BOOL), 1, 1),
        (FloatImm(0.5, F32), 0.5, None),
        (FloatImm(math.inf, F32), math.inf, None),
        (Broadcast(THREE, 4), 3, None),
        (Broadcast(N, 4), None, None),
        (Add(THREE, THREE), None, None),
        (N, None, None),
        (None, None, None),
    ],
    ids=str,
)
def test_only_constants_have_a_value(expr, constant, integer) -> None:
    assert as_constant(expr) == constant and as_int(expr) == integer


def test_values_of_several_constants_are_all_or_none() -> None:
    assert as_ints((THREE, IntImm(0, I64), IntImm(1, BOOL))) == [3, 0, 1]
    assert as_ints(()) == []
    assert as_ints((THREE, N)) is None
    assert as_ints((THREE, FloatImm(3.0, F32))) is None


def test_elements_are_counted_where_the_shape_is_constant() -> None:
    assert element_count(()) == 1
    assert element_count((THREE, IntImm(4, I64))) == 12
    assert element_count((IntImm(-2, I64), IntImm(-3, I64))) == 0
    assert element_count((THREE, N)) is None
