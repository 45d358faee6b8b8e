import pytest

from refcomp.foundation.errors import UserError
from refcomp.te import extents
from refcomp.te.tensor import var
from tests.strategies.operands import tensors


def test_constant_extents_are_integers() -> None:
    n = var("n")
    (data,) = tensors((n, 3))
    assert extents.extents(data)[1] == 3
    assert extents.extents(data)[0] is n


def test_broadcast_extents() -> None:
    n = var("n")
    assert extents.broadcast_extents((n, 1, 3), (4, 1), "add") == (n, 4, 3)
    with pytest.raises(UserError, match="an extent of the second operand is 3 instead of n"):
        extents.broadcast_extents((n,), (3,), "add")
    with pytest.raises(UserError, match=r"operand is 1 \+ n instead of n \+ 1"):
        extents.broadcast_extents((n + 1,), (1 + n,), "add")
