"""Views of buffers: elements, stores and addresses."""

import pytest

from refcomp.foundation.dtype import F32, F64, I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad
from refcomp.ir.expr import Cast, FloatImm, IntImm, Ramp, Var
from refcomp.ir.stmt import BufferStore
from refcomp.ir.view import BufferView

i, n = Var("i", I64), Var("n", I64)
A = BufferView(Buffer("A", F32, (IntImm(4, I64), n)))
B = BufferView(Buffer("B", F32, (IntImm(8, I64),)))
V = BufferView(Buffer("V", F32.with_lanes(4), (n,)))
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


def test_vectors_of_neighbours():
    read = A.vload((0, i), "float32x4")
    assert str(read.dtype) == "f32x4" and isinstance(read.indices[1], Ramp)
    store = A.vstore((0, i), read + 1.0)
    assert str(store.value.dtype) == "f32x4"
    converted = A.vstore((0, i), read.astype("int8x4"))
    assert converted.value.dtype == read.dtype


def test_wrong_vectors():
    with pytest.raises(UserError, match=r"A holds f32 and is read as f64x2\n.*read f32x2"):
        A.vload((0, 0), "float64x2")
    with pytest.raises(UserError, match="a vector of A begins at 1 indices, but A has 2"):
        A.vload(0, "float32x4")
    with pytest.raises(UserError, match="a vector of S begins at 0 indices"):
        S.vload((), "float64x4")
    with pytest.raises(UserError, match=r"V holds vectors of f32x4 and .* by 8 lanes\n.*V\[i\]"):
        V.vload(0, "float32x8")
    with pytest.raises(UserError, match="an index must be an integer, not i64x2"):
        A[0, Ramp(i, IntImm(1, I64), 2)]


def test_elements_that_are_vectors():
    assert V[i].dtype == V.vload(i, "float32x4").dtype == V.dtype
    assert V.vstore(i, 2).value.dtype == V.dtype


def test_what_an_address_is_for():
    assert str(A.access_ptr("wr")) == "update(A)"
    assert str(B.access_ptr("r", offset=4, content_lanes=4, extent=4)) == "read(B[4])"
    assert str(B.access_ptr("r", offset=i, ptr_type="handle", extent=n)) == "read(B[i])"
    with pytest.raises(UserError, match=r"vectors of 4 lanes cannot begin at element 2 of B\n"):
        B.access_ptr("r", offset=2, content_lanes=4)
    with pytest.raises(UserError, match=r"4 lanes .* element 4 of B\n.*extent 3"):
        B.access_ptr("r", offset=4, content_lanes=4, extent=3)
    with pytest.raises(UserError, match=r"5 elements from element 4 on are not within B\n.*has 8"):
        B.access_ptr("r", offset=4, extent=5)
    with pytest.raises(UserError, match="0 elements from element 9 on are not within B"):
        B.access_ptr("r", offset=9)
    with pytest.raises(UserError, match="0 elements from element -1 on are not within B"):
        B.access_ptr("r", offset=-1)
    with pytest.raises(UserError, match="content_lanes of B cannot be 0"):
        B.access_ptr("r", content_lanes=0)
    with pytest.raises(UserError, match=r"is given the offset 'handle'\n(.|\n)*offset=0"):
        B.access_ptr("r", "handle")
    assert str(B.access_ptr("r", offset=4, extent=4)) == "read(B[4])"
    assert str(B.access_ptr("r", offset=8)) == "read(B[8])"


def test_what_a_view_tells():
    assert (A.name, A.dtype, A.scope, len(A.shape)) == ("A", F32, "global", 2)
    assert repr(A) == "BufferView(A: f32, rank 2)"
