"""Classic tags: a computation of a user with such a tag is scheduled as those of refcomp."""

import pytest

import refcomp as rc
from refcomp.classic import topi
from refcomp.foundation.errors import UserError
from refcomp.te.tag import INJECTIVE


def test_a_tagged_computation_is_injective() -> None:
    A = rc.placeholder((4,), name="A")
    with rc.tag_scope(tag=topi.tag.ELEMWISE):
        B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
    assert topi.tag.is_injective(B.op.tag)
    assert not topi.tag.is_injective(topi.sum(A).op.tag)
    assert topi.sum(A).op.tag == topi.tag.COMM_REDUCE == topi.tag.COMM_REDUCE_IDX
    assert {topi.tag.ELEMWISE, topi.tag.BROADCAST, topi.tag.INJECTIVE} == {INJECTIVE}


def test_classic_texts_are_tags_of_injective_computations() -> None:
    for tag in ("elemwise", "broadcast", "injective", "broadcast_add"):
        assert topi.tag.is_injective(tag)
    for tag in ("", "conv2d_nchw", "comm_reduce"):
        assert not topi.tag.is_injective(tag)
    with pytest.raises(UserError, match="None is not a tag"):
        topi.tag.is_injective(None)
