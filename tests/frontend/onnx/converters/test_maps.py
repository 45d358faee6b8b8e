"""Operators of ai.onnx.ml on maps: the choices of each, and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check

ROWS = np.array([[0.25, 0.75], [0.5, 0.125]], np.float32)
FLOATS = {3: 1.5, 1: -2.25}
TEXTS = {3: "7", 1: "12"}
ZEROS = "writes floats with six digits, and 0.f for a key that is missing"


def case(operator, value, label="", *, expected=None, wrong=None, **attributes):
    return NodeCase(
        operator,
        1,
        [value],
        attributes,
        expected=None if expected is None else [expected],
        domain="ai.onnx.ml",
        label=label,
        wrong=wrong or {},
    )


def texts(*elements):
    return np.array([elements], object)


def vectorized(value, keys, expected):
    name = "string_vocabulary" if isinstance(keys[0], str) else "int64_vocabulary"
    wrong = {EVALUATOR: "returns a vector; ONNX Runtime returns one row, which models rely on"}
    label = f"{type(keys[0]).__name__}_{expected.dtype}"
    return case("DictVectorizer", value, label, expected=expected, wrong=wrong, **{name: keys})


CASES = [
    case("ZipMap", ROWS, "texts", classlabels_strings=["a", "b"]),
    case("ZipMap", ROWS, "integers", classlabels_int64s=[3, 1]),
    case("ZipMap", ROWS[0], "one_row", classlabels_int64s=[3, 1]),
    vectorized({"a": 4.5, "z": 8.0}, ["c", "a"], np.array([[0, 4.5]], np.float32)),
    vectorized({2: 4.5, 9: 8.0}, [1, 2], np.array([[0, 4.5]], np.float32)),
    vectorized({"a": 2**53 + 1}, ["c", "a"], np.array([[0, 2**53 + 1]])),
    vectorized({2: np.float64(0.1)}, [1, 2], np.array([[0, 0.1]])),
    vectorized({2: "x"}, [1, 2], texts("", "x")),
    *(
        case("CastMap", FLOATS, f"{to}_{form}", cast_to=to, map_form=form, max_map=5)
        for to in ("TO_FLOAT", "TO_INT64")
        for form in ("DENSE", "SPARSE")
    ),
    case(
        "CastMap",
        FLOATS,
        "floats_as_texts",
        cast_to="TO_STRING",
        map_form="SPARSE",
        max_map=4,
        expected=texts("0", "-2.25", "0", "1.5"),
        wrong={RUNTIME: ZEROS},
    ),
    case(
        "CastMap",
        TEXTS,
        "texts_as_floats",
        cast_to="TO_FLOAT",
        expected=np.array([[12, 7]], np.float32),
    ),
    case(
        "CastMap",
        TEXTS,
        "texts_as_integers",
        cast_to="TO_INT64",
        map_form="SPARSE",
        max_map=4,
        expected=np.array([[0, 12, 0, 7]]),
    ),
    case("CastMap", TEXTS, "texts", cast_to="TO_STRING", expected=texts("12", "7")),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_keys_of_a_sparse_map_have_places():
    given = case("CastMap", FLOATS, map_form="SPARSE", max_map=3)
    with pytest.raises(UserError, match="a map has the key 3, but its tensor has 3 places"):
        onnx_backend.prepare(given.model(), "INTERP").run(given.feeds())


def test_columns_and_labels_are_counted_in_a_run():
    given = case("ZipMap", ROWS, classlabels_int64s=[3])
    with pytest.raises(UserError, match="zip_map has 1 keys for a tensor of the shape"):
        onnx_backend.prepare(given.model(), "INTERP").run(given.feeds())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (case("CastMap", FLOATS, cast_to="FLOAT"), "its cast_to is 'FLOAT'"),
        (case("CastMap", FLOATS, map_form="FULL"), "its map_form is 'FULL'"),
        (case("CastMap", FLOATS, map_form="SPARSE", max_map=2**40), "cannot make a tensor of"),
        (case("CastMap", {"a": 1.5}), "the input map of map_values cannot be x0: map"),
        (case("DictVectorizer", FLOATS, string_vocabulary=["a"]), "it has no int64_vocabulary"),
        (case("ZipMap", ROWS), "it has 0 classlabels_strings and 0 classlabels_int64s"),
        (case("ZipMap", ROWS[None], classlabels_int64s=[3, 1]), "zip_map cannot take x0"),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())


def test_maps_from_other_keys_are_refused():
    model = replace(CASES[3]).model()
    model.graph.input[0].type.map_type.key_type = 6  # int32
    with pytest.raises(UserError, match="(?s)input 'x0' is a map .*int64 or strings"):
        from_onnx(model.SerializeToString())
