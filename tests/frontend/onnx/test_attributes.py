"""Attributes: each kind is read, and nothing is ignored."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.attributes import read_attributes

DECLARED = {"f": "float", "i": "int", "s": "string", "fs": "floats", "is": "ints", "t": "tensor"}


def read(**attributes):
    node = helper.make_node("Any", ["x"], ["y"], **attributes)
    return read_attributes(node, DECLARED, numpy_helper.to_array)


def test_every_kind_is_read() -> None:
    tensor = numpy_helper.from_array(np.array([3, 4]))
    given = read(**{"f": 0.5, "i": 3, "s": "a\nb", "fs": [1.0, 2.0], "is": [1, 2], "t": tensor})
    assert given.pop("t").tolist() == [3, 4]
    assert given == {"f": 0.5, "i": 3, "s": "a\nb", "fs": (1.0, 2.0), "is": (1, 2)}
    assert read() == {}


def test_unknown_and_ill_typed_attributes_are_refused() -> None:
    with pytest.raises(Unsupported, match="its attribute 'other' is unknown"):
        read(other=1)
    with pytest.raises(UserError, match="attribute 'i' is not of type int"):
        read(i=0.5)
    with pytest.raises(UserError, match="attribute 'f' is NaN"):
        read(f=float("nan"))


def test_text_that_is_no_utf8_is_read() -> None:
    assert "\ufffd" in read(s=b"\xff\xfe")["s"]
