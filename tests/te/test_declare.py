import pytest

import refcomp
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.expr import Var


def test_a_plain_buffer():
    a = refcomp.decl_buffer((4, 8), name="A")
    assert (a.name, str(a.dtype), a.scope, a.strides, a.offset_factor) == (
        "A",
        "f32",
        "global",
        (),
        0,
    )
    assert [str(dim) for dim in a.shape] == ["4", "8"] and str(a.elem_offset) == "0"


def test_what_is_declared_of_the_memory():
    s = refcomp.var("s")
    a = refcomp.decl_buffer(
        (4, 8), "int8", "A", strides=[s, 1], offset_factor=4, scope="shared", data_alignment=16
    )
    assert a.strides[0] is s and str(a.strides[1]) == "1"
    assert isinstance(a.elem_offset, Var) and a.elem_offset.name == "A.elem_offset"
    assert (a.scope, a.data_alignment, a.offset_factor) == ("shared", 16, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scope": "moon"}, "'moon' is not a scope\n.*buffer A\n.*global, local, shared"),
        ({"data_alignment": 3}, "buffer A cannot be aligned to 3 bytes"),
        ({"strides": [1]}, "buffer A has 2 dimensions and 1 strides"),
        ({"offset_factor": -1}, "the offset factor of buffer A is -1"),
        ({"dtype": "float3"}, "unknown dtype 'float3'"),
        ({"shape": (-1,)}, "a dimension cannot be negative"),
    ],
)
def test_mistakes(given, message):
    with pytest.raises(UserError, match=message):
        refcomp.decl_buffer(**{"shape": (4, 8), "name": "A"} | given)


def test_memory_of_ones_own_is_not_supported():
    with pytest.raises(Unsupported, match="buffer A is declared on memory of its own"):
        refcomp.decl_buffer((4,), name="A", data=refcomp.var("p"))
