"""Expressions at points some of whose variables and elements are known up to an error."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import Unsupported
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import Ramp, Var
from refcomp.oracle.floats.expressions import Points
from refcomp.oracle.floats.legal_values import Approx, exact
from refcomp.oracle.tensors.evaluate import EvaluateError

X, AT = Var("x", F32), Var("i", I64)
MEMORY = Buffer("M", F32, (3,))


def _about(value, error):
    parts = np.full(1, value, np.longdouble), np.full(1, error), np.zeros(1, bool)
    return Approx(*parts, np.abs(parts[0]))


def _points(error=0.0, index=1):
    elements = exact(np.array([1.0, 2.0, 4.0], np.float32), F32).spread((3,))
    elements.error[2] = 0.5
    return Points({AT: np.asarray(index)}, {MEMORY: elements}, (1,), "C", {X: _about(2.0, error)})


def test_errors_of_variables_travel():
    found = _points(error=0.25).value(X * 4.0)
    assert found.value[0] == 8 and 1.0 <= found.error[0] < 1.001
    assert _points().value(X * 4.0).error[0] == 0


@pytest.mark.parametrize(("index", "value", "error"), [(1, 2.0, 0.0), (2, 4.0, 0.5)])
def test_elements_of_buffers_have_their_own(index, value, error):
    found = _points(index=index).value(BufferLoad(MEMORY, (AT,)))
    assert (found.value, found.error) == (value, error)


def test_an_element_at_an_unknown_place_is_unknown():
    index = X.astype("int64")
    found = _points(error=0.7).value(BufferLoad(MEMORY, (index,))).spread((1,))
    assert np.isinf(found.error[0]) and found.doubtful[0]


def test_refusals():
    with pytest.raises(EvaluateError, match="variable y has no value in C"):
        _points().value(Var("y", F32) + X)
    with pytest.raises(Unsupported, match="the errors of Ramp are not bounded"):
        _points().value(Ramp(AT, rc.const(1, "int64"), 4))
