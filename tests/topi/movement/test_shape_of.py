"""shape_of: symbols, scalars, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.movement.shape_of import shape_of


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_symbols_become_elements(target):
    n = rc.var("n")
    data = rc.placeholder((n, 3, n * 2), "float16", name="data")
    result = shape_of(data)
    built = rc.build(rc.topi.schedule_llvm([result]), [data, result], target)
    found = rc.array(np.zeros(3, np.int64))
    built(rc.array(np.zeros((4, 3, 8), np.float16)), found)
    assert found.asnumpy().tolist() == [4, 3, 8]
    built(rc.array(np.zeros((0, 3, 0), np.float16)), found)
    assert found.asnumpy().tolist() == [0, 3, 0]


def test_a_scalar_has_no_extents():
    made = rc.oracle.evaluate([shape_of(rc.placeholder((), name="data"))], {})[0]
    assert made.shape == (0,)
    assert made.dtype == np.int64


def test_what_is_not_a_tensor_is_refused():
    with pytest.raises(UserError, match="shape_of is applied to a list, not to a tensor"):
        shape_of([1])


def test_symbols_without_elements_are_refused():
    with pytest.raises(UserError, match="shape_of cannot find symbols in a tensor without"):
        shape_of(rc.placeholder((0, rc.var("n"))))
