"""Operators of ai.onnx.ml that map labels: every version, the choices of each, and refusals."""

import numpy as np
import pytest
from onnx import numpy_helper

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check

ML = "ai.onnx.ml"
NAN = float("nan")
FLOATS = np.array([1.5, NAN, 3, 9, -0.0], np.float32)
NOT_FOUND = "does not find NaN, which the text allows as a key"
NUMBERS = np.array([[1, 2], [3, 9]])


def case(operator, version, inputs, label="", *, expected=None, wrong=None, **attributes):
    return NodeCase(
        operator,
        version,
        inputs,
        attributes,
        expected=expected,
        domain=ML,
        label=label,
        wrong=wrong or {},
    )


TEXTS = np.array([["b", "x"], ["", "a"]], object)
CASES = [
    case("LabelEncoder", 1, [TEXTS], "from_texts", classes_strings=["a", "b"]),
    case("CategoryMapper", 1, [TEXTS], "from_texts", cats_int64s=[3, 1], cats_strings=["a", "b"]),
    case(
        "LabelEncoder", 2, [TEXTS], "from_texts", keys_strings=["a", "b"], values_floats=[1.5, 2.0]
    ),
    case(
        "LabelEncoder",
        4,
        [TEXTS],
        "between_texts",
        keys_strings=["a", ""],
        values_strings=["one", "none"],
        default_string="many",
    ),
    case("OneHotEncoder", 1, [TEXTS], "texts", cats_strings=["b", "a", "c"]),
    case("LabelEncoder", 1, [NUMBERS], classes_strings=["a", "b", "c", "d"]),
    case("CategoryMapper", 1, [NUMBERS], cats_int64s=[3, 1], cats_strings=["c", "a"]),
    case(
        "LabelEncoder",
        2,
        [NUMBERS],
        keys_int64s=[3, 2],
        values_floats=[5.0, 6.0],
        default_float=1.25,
    ),
    case(
        "LabelEncoder",
        2,
        [FLOATS],
        "nan",
        keys_floats=[3.0, NAN, 1.5],
        values_int64s=[5, 6, 7],
        expected=[np.array([7, 6, 5, -1, -1])],
        wrong={RUNTIME: NOT_FOUND, EVALUATOR: NOT_FOUND},
    ),
    case("LabelEncoder", 2, [NUMBERS], "texts", keys_int64s=[3, 2], values_strings=["c", "b"]),
    case(
        "LabelEncoder",
        4,
        [FLOATS],
        "floats",
        keys_floats=[3.0, NAN, 0.0],
        values_floats=[1.0, 2.0, 3.0],
        expected=[np.array([-0.0, 2, 1, -0.0, 3], np.float32)],
        wrong={EVALUATOR: NOT_FOUND},
    ),
    case(
        "LabelEncoder",
        4,
        [NUMBERS],
        "last_key",
        keys_int64s=[3, 2, 3],
        values_int64s=[1, 2, 4],
        expected=[np.array([[-1, 2], [4, -1]])],
        wrong={RUNTIME: "takes the first of equal keys; the text says the last one"},
    ),
    case("OneHotEncoder", 1, [NUMBERS], cats_int64s=[3, 1, 2]),
    case(
        "OneHotEncoder",
        1,
        [np.array([1.5, 2, 3, 9], np.float32)],
        "floats",
        cats_int64s=[3, 1, 2],
        expected=[np.eye(3, dtype=np.float32)[[1, 2, 0, 0]] * [[1], [1], [1], [0]]],
        wrong={EVALUATOR: "does not cut floats off to integers"},
    ),
    case("OneHotEncoder", 1, [NUMBERS[:1]], "strict", cats_int64s=[1, 2], zeros=0),
]
for one in CASES:
    if one.operator == "OneHotEncoder" and one.expected:
        one.expected[0] = one.expected[0].astype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_tensors_may_hold_keys_and_values():
    attributes = {
        "keys_tensor": numpy_helper.from_array(np.array([1, 9], np.int16), "keys"),
        "values_tensor": numpy_helper.from_array(np.array([0.5, 2.5]), "values"),
    }
    given = case("LabelEncoder", 4, [NUMBERS.astype(np.int16)], **attributes)
    (made,) = onnx_backend.prepare(given.model(), "INTERP").run(given.feeds())
    assert made.tolist() == [[0.5, -0.0], [-0.0, 2.5]] and made.dtype == np.float64


def test_no_keys_map_nothing():
    given = case("LabelEncoder", 1, [NUMBERS], default_string="none")
    (made,) = onnx_backend.prepare(given.model(), "INTERP").run(given.feeds())
    assert made.tolist() == [["none"] * 2] * 2


def test_unknown_categories_stop_a_strict_run():
    given = case("OneHotEncoder", 1, [TEXTS], cats_strings=["a", "b"], zeros=0)
    with pytest.raises(UserError, match="an element that is not in its list of categories"):
        onnx_backend.prepare(given.model(), "INTERP").run(given.feeds())
    given = case("OneHotEncoder", 1, [NUMBERS], cats_int64s=[1, 2, 3], zeros=0)
    with pytest.raises(UserError, match="an element that is not in its list of categories"):
        onnx_backend.prepare(given.model(), "INTERP").run(given.feeds())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (case("LabelEncoder", 2, [NUMBERS], keys_int64s=[1]), "it has 0 attributes values_"),
        (
            case("LabelEncoder", 2, [NUMBERS], keys_int64s=[1], values_int64s=[1, 2]),
            "it has 1 keys, but 2 values",
        ),
        (
            case("LabelEncoder", 2, [NUMBERS], keys_strings=["a"], values_int64s=[1]),
            r"its input is x0: i64\[2, 2\], but its keys are \['a'\]",
        ),
        (
            case("LabelEncoder", 2, [NUMBERS], keys_floats=[1.5], values_int64s=[1]),
            r"its keys are \[1.5\]",
        ),
        (case("OneHotEncoder", 1, [NUMBERS], cats_strings=["a"]), "but it has no cats_int64s"),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
