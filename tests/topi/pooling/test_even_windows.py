"""Even windows: what is refused."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.pooling.even_windows import adaptive_maximum
from tests.strategies.operands import tensors


def test_symbolic_and_empty_extents_are_refused() -> None:
    symbolic, empty = tensors((1, 1, var("w")), (1, 1, 0))
    with pytest.raises(UserError, match="pool: a spatial extent must be a constant"):
        adaptive_maximum("pool", symbolic, (2,), "NCW", 1)
    with pytest.raises(UserError, match="pool cannot divide 0 elements into windows"):
        adaptive_maximum("pool", empty, (2,), "NCW", 1)


def test_as_many_windows_as_elements_are_the_elements() -> None:
    (data,) = tensors((1, 1, 4))
    assert adaptive_maximum("pool", data, (4,), "NCW", 1).shape[2].value == 4
