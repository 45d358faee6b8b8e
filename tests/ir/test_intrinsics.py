"""The table of intrinsics and the errors of a look-up in it."""

import pytest

from refcomp.foundation.dtype import BOOL, F32, I32, SCALAR_DTYPES, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.intrinsics import INTRINSICS, find_intrinsic


@pytest.mark.parametrize("intrinsic", INTRINSICS.values(), ids=lambda i: i.name)
def test_each_is_found_for_each_of_its_kinds_and_no_other(intrinsic):
    for dtype in SCALAR_DTYPES:
        if dtype.kind in intrinsic.kinds:
            assert find_intrinsic(intrinsic.name, dtype, intrinsic.arity) is intrinsic
        else:
            with pytest.raises(UserError, match=f"{intrinsic.name} is not defined on"):
                find_intrinsic(intrinsic.name, dtype, intrinsic.arity)


@pytest.mark.parametrize("intrinsic", INTRINSICS.values(), ids=lambda i: i.name)
def test_a_result_has_as_many_lanes_as_its_operands(intrinsic):
    operand = next(d for d in reversed(SCALAR_DTYPES) if d.kind in intrinsic.kinds)
    assert intrinsic.result_dtype(operand.with_lanes(4)).lanes == 4


def test_results():
    vector = F32.with_lanes(8)
    assert INTRINSICS["isnan"].result_dtype(vector) == BOOL.with_lanes(8)
    assert INTRINSICS["exp"].result_dtype(vector) == vector
    assert INTRINSICS["float_to_bits"].result_dtype(F32) == as_dtype("u32")
    assert INTRINSICS["bits_to_float"].result_dtype(as_dtype("u16")) == as_dtype("f16")


def test_errors():
    with pytest.raises(UserError, match="unknown intrinsic 'expp'") as caught:
        find_intrinsic("expp", F32, 1)
    assert "sqrt" in caught.value.remedy
    with pytest.raises(UserError, match="pow takes 2 operands, 1 given"):
        find_intrinsic("pow", F32, 1)
    with pytest.raises(UserError, match="exp is not defined on dtype i32") as caught:
        find_intrinsic("exp", I32, 1)
    assert "float" in caught.value.remedy
