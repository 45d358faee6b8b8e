"""Rules of operators that move elements: differences, PyTorch, indices, empty tensors."""

import numpy as np
import pytest

from refcomp.graph.gradients.rules.movement import RULES
from tests.graph.gradients.family_checks import (
    check_differences,
    check_torch_cases,
    check_types,
    operators_behind,
    slopes_of,
)

# Casts change the dtype, in which differences cannot be taken.
_COMPARED = sorted(set(RULES) - {"cast", "cast_like"})


@pytest.mark.parametrize("name", _COMPARED)
def test_gradients_agree_with_differences(name):
    check_differences(name)


@pytest.mark.parametrize("name", _COMPARED)
def test_gradients_have_the_types_of_inputs(name):
    check_types(name)


def test_gradients_agree_with_torch() -> None:
    check_torch_cases(RULES, least=12)


def test_cast_returns_the_adjoint_in_the_dtype_of_the_input() -> None:
    x = np.array([1, 2], "float32")
    head = np.array([3, 0.1], "float64")
    _, (slope,) = slopes_of("cast", {"x": x}, {"dtype": "float64"}, head)
    assert slope.dtype == np.float32
    assert slope.tolist() == head.astype("float32").tolist()


def test_an_index_that_is_read_twice_adds_both_adjoints() -> None:
    feeds = {"indices": np.array([1, 1, 0], "int32"), "weight": np.ones((3, 1), "float32")}
    head = np.array([[1], [10], [100]], "float32")
    slopes, (weight,) = slopes_of("embedding", feeds, head=head)
    assert weight.tolist() == [[100], [11], [0]]
    assert "vjp" not in operators_behind(slopes)


@pytest.mark.parametrize(("name", "row"), [("embedding", 0), ("index_select", 2), ("gather", 2)])
def test_negative_indices_are_those_that_the_operator_reads(name, row):
    data = np.array([[5], [6], [7]], "float32")
    indices = np.array([-1], "int64")
    feeds = {"data": data, "indices": indices}
    attributes = {}
    if name == "embedding":
        feeds = {"indices": indices, "weight": data}
    elif name == "gather":
        feeds["indices"] = indices[:, None]
        attributes = {"axis": 0}
    _, (slope,) = slopes_of(name, feeds, attributes)
    expected = np.zeros((3, 1))
    expected[row] = 1
    assert slope.tolist() == expected.tolist()


@pytest.mark.parametrize(("mode", "expected"), [("clip", [2, 0, 1]), ("wrap", [0, 1, 2])])
def test_take_adds_where_its_mode_reads(mode, expected):
    feeds = {"data": np.ones(3, "float32"), "indices": np.array([-1, -2, 5], "int16")}
    slopes, (slope,) = slopes_of("take", feeds, {"axis": 0, "mode": mode})
    assert "vjp" not in operators_behind(slopes)
    assert slope.tolist() == expected


@pytest.mark.parametrize(
    ("attributes", "indices"),
    [
        ({}, np.array([1, 2])),
        ({"axis": 0}, np.array([[1], [2]])),
        ({"axis": 0, "mode": "wrap"}, np.array([1, 2], "uint64")),
    ],
)
def test_other_cases_of_take_are_left_to_vjp(attributes, indices):
    feeds = {"data": np.ones(3, "float32"), "indices": indices}
    slopes, (slope,) = slopes_of("take", feeds, attributes)
    assert "vjp" in operators_behind(slopes)
    assert slope.tolist() == [0, 1, 1]


@pytest.mark.parametrize("dtype", ["uint64", "uint8"])
def test_indices_of_all_dtypes_are_read(dtype):
    feeds = {"data": np.ones((2, 2), "float32"), "indices": np.array([1, 0], dtype)}
    slopes, (slope,) = slopes_of("index_select", feeds)
    assert slope.tolist() == [[1, 1], [1, 1]]
    # An i64 does not hold each u64.
    assert ("vjp" in operators_behind(slopes)) == (dtype == "uint64")


def test_tensors_without_elements_keep_their_shapes() -> None:
    _, (slope,) = slopes_of("flatten", {"x": np.ones((2, 0, 3), "float32")})
    assert slope.shape == (2, 0, 3)


def test_parts_of_split_without_an_adjoint_count_as_zero() -> None:
    attributes = {"axis": 0, "sizes": (1, 2)}
    _, (slope,) = slopes_of("split", {"x": np.ones(3, "float32")}, attributes)
    assert slope.tolist() == [1, 0, 0]


@pytest.mark.parametrize("strides", [(1,), (2,), (-1,)])
def test_slices_with_steps_are_left_to_vjp(strides):
    attributes = {"begin": (0,), "end": (4,), "strides": strides}
    if strides == (-1,):
        attributes = {"begin": (3,), "end": (1,), "strides": strides}
    slopes, (slope,) = slopes_of("strided_slice", {"x": np.ones(5, "float32")}, attributes)
    assert ("vjp" in operators_behind(slopes)) == (strides != (1,))
    expected = {1: [1, 1, 1, 1, 0], 2: [1, 0, 1, 0, 0], -1: [0, 0, 1, 1, 0]}
    assert slope.tolist() == expected[strides[0]]


def test_padding_by_edges_is_left_to_vjp() -> None:
    attributes = {"pad_before": (1,), "mode": "edge"}
    slopes, (slope,) = slopes_of("pad", {"x": np.ones(3, "float32")}, attributes)
    assert "vjp" in operators_behind(slopes)
    assert slope.tolist() == [2, 1, 2]
