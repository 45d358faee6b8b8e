import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import FloatImm, IntImm


def test_numbers_become_constants():
    assert [str(rc.convert(x)) for x in (3, 1.5, True, np.int8(4))] == [
        "3i32",
        "1.5f32",
        "true",
        "4i8",
    ]


def test_lists_tuples_and_dicts_are_converted_item_by_item():
    a = rc.placeholder((4,), name="A")
    one, inner, named = rc.convert([1, (2.0, [a]), {"k": 3, 5: "text"}])
    assert isinstance(one, IntImm) and isinstance(inner[0], FloatImm) and inner[1] == (a,)
    assert list(named) == ["k", 5] and isinstance(named["k"], IntImm) and named[5] == "text"
    assert rc.convert([]) == () and rc.convert({}) == {}


def test_texts_bytes_none_and_functions_stay():
    def f(x):
        return x + 1

    assert rc.convert("text") == "text" and rc.convert(None) is None
    assert rc.convert(b"ab") == b"ab" and rc.convert(bytearray(b"ab")) == b"ab"
    assert rc.convert(f) is f and rc.convert([f])[0](2) == 3


def test_objects_of_refcomp_stay():
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: a[i], name="B")
    s = rc.create_schedule(b)
    for item in (a, b.op, s, rc.decl_buffer((4,)), rc.nd.array([1.0]), rc.cpu(), rc.var("n")):
        assert rc.convert(item) is item


def test_axes_and_single_elements_become_expressions():
    k = rc.reduce_axis((0, 8), name="k")
    assert str(rc.convert(k) + 1) == "k + 1"
    assert str(rc.convert(rc.placeholder((), name="X")) + 1.0) == "TensorRead(X) + 1.0f32"


def test_a_converted_list_is_a_shape():
    assert str(rc.placeholder(rc.convert([4, 5]), name="A").shape) == "(4, 5)"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1, 2}, r"set \{1, 2\} cannot be converted(.|\n)*pass a list"),
        (np.zeros(2), r"ndarray (.|\n)*cannot be converted(.|\n)*refcomp\.nd\.array\(x\)"),
        ([1, {2}], r"set \{2\} cannot be converted"),
        (1j, "complex 1j cannot be used as an expression"),
    ],
)
def test_other_values_are_refused(value, message):
    with pytest.raises(UserError, match=message):
        rc.convert(value)


def test_a_list_that_contains_itself_is_refused():
    endless = [1]
    endless.append({"more": endless})
    with pytest.raises(UserError, match="a list that contains itself cannot be converted"):
        rc.convert(endless)
