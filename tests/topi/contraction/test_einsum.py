"""einsum, outer, tensordot: broadcasting, special values, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents
from refcomp.te.tensor import var
from refcomp.topi.contraction.einsum import einsum, outer, tensordot
from tests.strategies.operands import integers, run_te, tensors


@pytest.mark.parametrize("equation", ["ij,jk,kl->il", "ij,jk,kl", "ij,jk,kl->", "ij,jk,kl->lijk"])
def test_any_number_of_operands(equation):
    arrays = [integers(k, 2, 2) for k in range(3)]
    found = run_te(einsum, *arrays, is_symbolic=False, equation=equation)
    assert found.tolist() == np.einsum(equation, *arrays).tolist()


def test_an_ellipsis_broadcasts():
    a = integers(1, 2, 1, 3)
    b = integers(2, 4, 3)
    found = run_te(einsum, a, b, equation="...i,...i->...")
    assert found.tolist() == np.einsum("...i,...i->...", a, b).tolist()
    (symbolic,) = tensors((var("n"), 2, 2))
    assert extents(einsum(symbolic, equation="...ii->...i")) == (symbolic.shape[0], 2)


def test_empty_sums_are_zero_and_halves_are_summed_in_single_precision():
    empty = np.zeros((2, 0), np.float32)
    assert run_te(einsum, empty, equation="ij->i").tolist() == [0, 0]
    halves = np.array([60000, 60000, -60000], np.float16)
    assert run_te(einsum, halves, equation="i->") == 60000
    assert run_te(outer, halves[:0], halves).shape == (0, 3)


def test_ill_formed_calls_are_refused():
    a, b, vector = tensors((2, 3), (2, 4), (3,))
    with pytest.raises(UserError, match="einsum has no operands"):
        einsum(equation="")
    with pytest.raises(UserError, match="the extent of 'j' in p1 is 2 instead of 3"):
        einsum(a, b, equation="ij,jk")
    with pytest.raises(UserError, match="einsum cannot combine f32 with i32"):
        einsum(a, *tensors((2, 3), dtype="int32"), equation="ij,ij")
    with pytest.raises(UserError, match="einsum takes numbers, not bool"):
        einsum(*tensors((2,), dtype="bool"), equation="i")
    with pytest.raises(UserError, match="einsum cannot read 'i'"):
        einsum(a, equation="i")
    with pytest.raises(UserError, match="outer takes vectors, not a tensor of 2 dimensions"):
        outer(vector, a)
    with pytest.raises(UserError, match=r"cannot pair the axes \(0, 0\) with \(0, 1\)"):
        tensordot(a, b, axes_a=(0, 0), axes_b=(0, 1))
    with pytest.raises(UserError, match=r"cannot pair the axes \(0,\) with \(0, 1\)"):
        tensordot(a, b, axes_a=(0,), axes_b=(0, 1))
    with pytest.raises(UserError, match="the extent of 'a1' in p1 is 4 instead of 3"):
        tensordot(a, b, axes_a=(1,), axes_b=(1,))
    with pytest.raises(UserError, match="tensordot: axis 2 is out of range"):
        tensordot(a, b, axes_a=(2,), axes_b=(1,))
    with pytest.raises(UserError, match="tensordot is applied to a int"):
        tensordot(3, b, axes_a=(), axes_b=())
