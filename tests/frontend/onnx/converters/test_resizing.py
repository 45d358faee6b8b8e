"""Resize and Upsample: every version, the choices of each, and refusals."""

import numpy as np
import pytest

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.graph import is_macro
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check

X = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4) ** 1.5
INTEGERS = np.arange(12, dtype=np.int64).reshape(1, 1, 3, 4) * 20 - 100
NONE = np.zeros(0, np.float32)
CROP = np.array([0, 0, 0.25, 0.5, 1, 1, 0.75, 1.5], np.float32)
ALIGNED = {"coordinate_transformation_mode": "align_corners", "mode": "linear"}
WIDTHS = "the text of opset 11 on divides by extents; ONNX's own tests by extents times scales"
OLD = "evaluates Resize as opset 11 on means it, with shifts by half an element"


def scales(*numbers):
    return np.array(numbers, np.float32)


def sizes(*numbers):
    return np.array(numbers, np.int64)


def repeated(data, rows, columns):
    return data.repeat(rows, axis=2).repeat(columns, axis=3)


def resize(version, given, label, *, data=X, roi=None, wrong=None, expected=None, **attributes):
    """A case of Resize by scales (floats) or by sizes (integers)."""
    roi = NONE if roi is None and version < 13 else roi
    if given.dtype == np.float32:
        inputs = [data, roi, given]
    else:
        inputs = [data, roi, NONE if version < 13 else None, given]
    constants = [k for k in range(1, len(inputs)) if inputs[k] is not None]
    return NodeCase(
        "Resize",
        version,
        inputs,
        attributes,
        expected=expected,
        wrong=wrong or {},
        constants=constants,
        label=label,
        atol=1e-4,
    )


EARLY_CASES = [
    NodeCase(
        "Upsample",
        1,
        [X],
        {"height_scale": 2.0, "width_scale": 3.0},
        expected=[repeated(X, 2, 3)],
    ),
    NodeCase(
        "Upsample",
        1,
        [X[..., :2]],
        {"height_scale": 1.0, "width_scale": 2.0, "mode": "bilinear"},
        expected=[X[..., :2] @ np.array([[1, 0.5, 0, 0], [0, 0.5, 1, 1]], np.float32)],
        label="bilinear",
    ),
    NodeCase("Upsample", 7, [X], {"scales": [1.0, 1.0, 2.0, 3.0]}, [repeated(X, 2, 3)]),
    NodeCase("Upsample", 9, [X, scales(1, 1, 2, 3)], {}, [repeated(X, 2, 3)], constants=[1]),
    NodeCase("Upsample", 10, [X, scales(1, 1, 2, 3)], {}, [repeated(X, 2, 3)], constants=[1]),
    NodeCase(
        "Resize",
        10,
        [X, scales(1, 1, 0.6, 1.5)],
        expected=[X[:, :, :1][..., [0, 0, 1, 2, 2, 3]]],
        constants=[1],
        wrong={EVALUATOR: OLD},
    ),
    NodeCase(
        "Resize",
        10,
        [X, scales(1, 1, 0.7, 2)],
        expected=[repeated(X[:, :, [0, 2]], 1, 2)],
        constants=[1],
        wrong={EVALUATOR: OLD},
        label="down_and_up",
    ),
    NodeCase(
        "Resize",
        10,
        [X[..., :2], scales(1, 1, 1, 2)],
        {"mode": "linear"},
        expected=[X[..., :2] @ np.array([[1, 0.5, 0, 0], [0, 0.5, 1, 1]], np.float32)],
        constants=[1],
        wrong={EVALUATOR: OLD},
        label="linear",
    ),
]
VERSIONS = (11, 13, 18, 19)
LATER_CASES = [
    *(resize(v, scales(1, 1, 2, 1.5), "up", mode="linear") for v in VERSIONS),
    *(resize(v, sizes(1, 2, 2, 7), "sizes", mode="cubic") for v in VERSIONS),
    resize(11, sizes(1, 2, 5, 7), "nn", coordinate_transformation_mode="tf_half_pixel_for_nn"),
    *(
        resize(
            v,
            sizes(1, 2, 2, 5),
            "crop",
            roi=CROP,
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=7.0,
        )
        for v in VERSIONS
    ),
    resize(
        19,
        sizes(1, 2, 3, 4),
        "crop_of_one_extent",
        roi=np.array([0, 0, 0.25, 0, 1, 1, 0.75, 1], np.float32),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        wrong={RUNTIME: "copies an axis whose extent stays, although a part of it is cropped"},
        expected=[
            np.stack([(X[:, :, 0] + X[:, :, 1]) / 2, X[:, :, 1], (X[:, :, 1] + X[:, :, 2]) / 2], 2)
        ],
    ),
    *(
        resize(19, sizes(1, 2, 5, 6), label, mode="nearest", nearest_mode=label)
        for label in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    resize(19, scales(1, 1, 2, 2), "aligned", **ALIGNED),
    resize(
        19,
        scales(1, 1, 1, 0.6),
        "aligned_fraction",
        wrong={RUNTIME: WIDTHS},
        expected=[
            X[..., [0, 2]] + np.array([0, 0.142857], np.float32) * (X[..., [0, 3]] - X[..., [0, 2]])
        ],
        **ALIGNED,
    ),
    resize(18, scales(0.5, 2), "axes", mode="linear", axes=[3, 2], antialias=1),
    resize(19, scales(0.5, 0.7), "cubic", mode="cubic", axes=[-1, -2], exclude_outside=1),
    resize(19, sizes(6, 6), "not_larger", axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
    resize(19, sizes(6, 6), "not_smaller", axes=[2, 3], keep_aspect_ratio_policy="not_smaller"),
    resize(
        19,
        scales(1, 1, 1, 1.6),
        "symmetric",
        mode="linear",
        coordinate_transformation_mode="half_pixel_symmetric",
    ),
    resize(19, sizes(1, 1, 6, 4), "integers", data=INTEGERS, mode="linear"),
    resize(19, scales(1, 1, 1, 2), "halves", data=X.astype(np.float16), mode="linear"),
    resize(
        19,
        sizes(1, 2, 0, 4),
        "nothing",
        expected=[X[:, :, :0]],
        wrong={RUNTIME: "refuses extents of 0", EVALUATOR: "divides by 0"},
    ),
]
CASES = EARLY_CASES + LATER_CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_a_symbolic_batch_needs_no_macro():
    model = resize(19, scales(1, 1, 2, 2), "").model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    graph = from_onnx(model.SerializeToString())
    assert not any(is_macro(node.operator) for node in graph.nodes)
    assert str(graph.outputs[0]) == "y0: f32[N, 2, 6, 8]"


def test_sizes_that_only_a_run_knows():
    case = NodeCase("Resize", 19, [X, None, None, sizes(1, 2, 5, 8)])
    (made,) = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())
    assert made.shape == (1, 2, 5, 8)
    case = NodeCase("Resize", 10, [X, scales(1, 1, 2, 2)])
    (made,) = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())
    assert made.tolist() == repeated(X, 2, 2).tolist()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            NodeCase("Upsample", 1, [X[0]], {"height_scale": 2.0, "width_scale": 2.0}),
            "its input is x0: f32\\[2, 3, 4\\]",
        ),
        (resize(19, scales(1, 1, np.inf, 2), ""), "its scales is .*inf"),
        (
            NodeCase("Resize", 10, [X, scales(1, 1, np.nan, 2)], constants=[1]),
            "its scales is .*nan",
        ),
        (resize(19, sizes(1, 2**31 - 1, 0, 2**31 - 1), ""), "it cannot resize .* to extents of"),
        (resize(19, scales(1, 2), ""), "its scales has 2 numbers, not 4"),
        (resize(19, sizes(1, 2), ""), "its sizes has 2 numbers, not 4"),
        (NodeCase("Resize", 19, [X]), "it has both scales and sizes, or neither"),
        (
            resize(19, sizes(1, 2, 3, 4), "", keep_aspect_ratio_policy="near"),
            "its keep_aspect_ratio_policy is 'near'",
        ),
        (resize(19, sizes(1, 2, 3, 4), "", data=X[:, :, :0]), "an axis has no elements"),
        (resize(19, sizes(1, 2, -3, 4), ""), r"it cannot resize .* to extents of \[-3\]"),
        (resize(19, scales(1, 1, 2, 2), "", mode="area"), "does not know the mode 'area'"),
        (
            NodeCase("Resize", 10, [X, np.float32(2)], constants=[1]),
            "its scales is .*, not a list of floats",
        ),
        (
            resize(
                19,
                scales(1, 1, 1, 2),
                "",
                roi=CROP[:4],
                coordinate_transformation_mode="tf_crop_and_resize",
            ),
            "its roi has 4 numbers, not 8",
        ),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
