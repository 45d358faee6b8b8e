"""Views of buffers: elements, stores and addresses."""

import pytest

from refcomp.foundation.dtype import F32, F64, I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad
from refcomp.ir.expr import Cast, FloatImm, IntImm, Var
from refcomp.ir.stmt import BufferStore
from refcomp.ir.view import BufferView

i, n = Var("i", I64), Var("n", I64)
A = BufferView(Buffer("A", F32, (IntImm(4, I64), n)))
S = BufferView(Buffer("S", F64, ()), access="read")


def test_elements_by_dimension_and_by_offset():
    assert isinstance(A[i, 1], BufferLoad)
    assert str(A[i, 1]) == str(A.vload((i, 1))) == "A[i, 1]"
    assert str(A[i + 2]) == "A[(i + 2) // n, (i + 2) % n]"
    assert str(S[()]) == str(S[0]) == "S[]"


def test_what_is_written_is_converted():
    store = A.vstore((0, i), 2)
    assert isinstance(store, BufferStore) and isinstance(store.value, FloatImm)
    assert isinstance(A.vstore((0, i), i).value, Cast)


def test_addresses():
    assert (A.data.indices, A.data.access) == ((), "update")
    assert S.data.access == "read"
    for mask, access in (
        ("r", "read"),
        ("w", "write"),
        ("rw", "update"),
        (1, "read"),
        (3, "update"),
    ):
        assert isinstance(A.access_ptr(mask), AddressOf)
        assert A.access_ptr(mask).access == access
    assert str(A.access_ptr("r", n * 2)) == "read(A[n * 2 // n, n * 2 % n])"


@pytest.mark.parametrize("mask", ["x", 4, None])
def test_an_unknown_mask(mask):
    with pytest.raises(UserError, match='is not a way to use A\n.*one of "r", "w", "rw"'):
        A.access_ptr(mask)


def test_a_wrong_number_of_indices():
    with pytest.raises(UserError, match="A has 2 dimensions and is indexed with 3"):
        A[i, i, i]
    with pytest.raises(UserError, match="an index must be an integer, not f32"):
        A[0, 1.5]


def test_vectors_are_made_by_loops():
    with pytest.raises(Unsupported, match="f32x4 is read from or written to A\n(.|\n)*vectorize"):
        A.vload((0, 0), "float32x4")


def test_what_a_view_tells():
    assert (A.name, A.dtype, A.scope, len(A.shape)) == ("A", F32, "global", 2)
    assert repr(A) == "BufferView(A: f32, rank 2)"
