"""GridSample, AffineGrid and Col2Im: every version, the choices of each, and refusals."""

import numpy as np
import pytest

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check
from tests.strategies.operands import floats

IMAGE = floats(0, 2, 3, 4, 5)
VOLUME = floats(1, 1, 2, 3, 4, 5)
GRID = 1.2 * np.tanh(floats(2, 2, 3, 2, 2))
GRID3 = 1.2 * np.tanh(floats(3, 1, 2, 3, 2, 3))
LONG = np.array([[[[1, 2], [-3, 2**62 + 1]]]])
CORNERS = np.array([[[[-0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]]], np.float32)
SIZE = np.array([2, 3, 4, 5])
THETA = floats(4, 2, 2, 3)


def sample(version, label, data=IMAGE, grid=GRID, **attributes):
    return NodeCase(
        "GridSample", version, [data, grid], attributes, label=label, rtol=1e-3, atol=1e-5
    )


CASES = [
    sample(16, "bilinear", mode="bilinear"),
    sample(16, "nearest", mode="nearest", padding_mode="border"),
    sample(16, "bicubic", mode="bicubic", align_corners=1),
    *(sample(v, "linear") for v in (20, 22)),
    *(sample(v, "cubic", mode="cubic") for v in (20, 22)),
    sample(20, "volume", VOLUME, GRID3, padding_mode="reflection"),
    sample(22, "volume", VOLUME, GRID3, mode="nearest", align_corners=1),
    NodeCase(
        "GridSample",
        22,
        [LONG, CORNERS],
        {"mode": "nearest"},
        expected=[np.array([[[[1, 2**62 + 1, -3]]]])],
        wrong={EVALUATOR: "samples integers in f32, which has 24 bits"},
        label="integers",
    ),
    NodeCase(
        "GridSample",
        22,
        [np.array([[[[0, 3]]]], np.int32), np.array([[[[0, 0], [0.25, 0]]]], np.float32)],
        expected=[np.array([[[[1, 2]]]], np.int32)],
        wrong={EVALUATOR: "multiplies by weights that are cut off to integers"},
        label="integers_between",
    ),
    NodeCase(
        "GridSample",
        22,
        [IMAGE, GRID.astype(np.float64)],
        label="f64_grid",
    ),
    NodeCase("AffineGrid", 20, [THETA, SIZE], {"align_corners": 1}, constants=[1]),
    NodeCase("AffineGrid", 20, [floats(5, 1, 3, 4), np.array([1, 1, 2, 3, 4])], constants=[1]),
    NodeCase(
        "Col2Im",
        18,
        [floats(6, 2, 12, 9), np.array([5, 6]), np.array([2, 3])],
        {"pads": [0, 1, 0, 0], "strides": [1, 2], "dilations": [2, 1]},
        constants=[1, 2],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_sizes_that_only_a_run_knows():
    for case in CASES:
        if case.constants:
            open_case = NodeCase(case.operator, case.version, case.inputs, case.attributes)
            check(open_case)


def test_symbolic_extents_are_those_of_the_run():
    case = sample(20, "")
    model = case.model()
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[2].dim_param = "H"
    dims[0].dim_param = "N"
    wanted = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())
    made = onnx_backend.prepare(model, "INTERP").run(case.feeds())
    assert made[0].tolist() == wanted[0].tolist()


def test_symbolic_matrices_are_those_of_the_run():
    case = NodeCase("AffineGrid", 20, [THETA, SIZE])
    model = case.model()
    for extent in model.graph.input[0].type.tensor_type.shape.dim:
        extent.Clear()
    (made,) = onnx_backend.prepare(model, "INTERP").run(case.feeds())
    assert made.shape == (2, 4, 5, 2)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (sample(16, "", VOLUME, GRID3), "its input is x0: f32"),
        (sample(22, "", mode="area"), "does not know the mode 'area'"),
        (sample(22, "", padding_mode="none"), "does not know the padding 'none'"),
        (
            NodeCase("AffineGrid", 20, [THETA, SIZE[:3]], constants=[1]),
            r"its size is \[2, 3, 4\]",
        ),
        (
            NodeCase("AffineGrid", 20, [THETA, np.array([3, 3, 4, 5])], constants=[1]),
            "has 3 images, but .* has 2 matrices",
        ),
        (
            NodeCase("Col2Im", 18, [floats(6, 2, 11, 8), SIZE[:2], SIZE[:2]], constants=[1, 2]),
            "cannot divide 11 rows",
        ),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
