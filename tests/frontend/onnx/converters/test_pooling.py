import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check


def floats(*shape):
    count = int(np.prod(shape))
    return ((np.arange(count) * 7 % 23 - 11) / 4).reshape(shape).astype(np.float32)


X1, X2, X3 = floats(2, 2, 7), floats(1, 2, 5, 6), floats(1, 2, 4, 3, 5)
WINDOW = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}


def norms(data, p, axes):
    """Return norms along axes, which stay."""
    return (np.abs(data.astype(float)) ** p).sum(axes, keepdims=True) ** (1 / p)


def pair_norms(data, p):
    """Return the norms of pairs of neighbours."""
    pairs = np.stack([data[..., :-1], data[..., 1:]])
    return norms(pairs, p, 0)[0].astype(np.float32)


def mean_of_rest(data):
    """Return the mean of each three neighbours that exist."""
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1)), constant_values=np.nan)
    views = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=2)
    return np.nanmean(views, -1).astype(np.float32)


def beyond_kernel(data, counts):
    """Return the means of windows of 2, with padding of 3 before and of 2 after."""
    filler = 0 if counts else np.nan
    padded = np.pad(data, [(0, 0), (0, 0), (3, 2)], constant_values=filler)
    views = np.lib.stride_tricks.sliding_window_view(padded, 2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing is NaN
        return np.nanmean(views, -1).astype(np.float32)


def places(data, kernel, order):
    """Return where the first maximum of each window is, counted from the first or last axis."""
    numbers = np.arange(data.size).reshape(data.shape)
    if order:
        per_channel = data[0, 0].size
        within = np.arange(per_channel).reshape(data.shape[2:], order="F")
        numbers = numbers - numbers % per_channel + within
    axes = tuple(range(2, data.ndim))
    view = np.lib.stride_tricks.sliding_window_view
    windows, found = (
        view(a, kernel, axes).reshape(*_shape(a, kernel), -1) for a in (data, numbers)
    )
    first = windows.argmax(-1, keepdims=True)
    return np.take_along_axis(found, first, -1)[..., 0].astype(np.int64)


def greatest(data, kernel):
    axes = tuple(range(2, data.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(data, kernel, axes)
    return windows.max(tuple(range(data.ndim, windows.ndim)))


def _shape(data, kernel):
    sizes = zip(data.shape[2:], kernel, strict=True)
    return (*data.shape[:2], *(size - extent + 1 for size, extent in sizes))


AVERAGE = [
    NodeCase(
        "AveragePool",
        1,
        [X1],
        {"kernel_shape": [3], "pads": [1, 1]},
        expected=[mean_of_rest(X1)],
        wrong={"ONNX's evaluator": "it counts padding, which the text excludes"},
    ),
    *(NodeCase("AveragePool", version, [X2], WINDOW) for version in (7, 10, 11, 19, 22)),
    NodeCase("AveragePool", 7, [X2], {**WINDOW, "count_include_pad": 1}, label="all"),
    NodeCase("AveragePool", 22, [X1], {"kernel_shape": [3], "dilations": [2]}, label="1-D"),
    NodeCase("AveragePool", 22, [X3], {"kernel_shape": [2, 2, 2], "strides": [2, 1, 2]}),
    NodeCase(
        "AveragePool", 10, [X1], {"kernel_shape": [2], "strides": [2], "ceil_mode": 1}, label="ceil"
    ),
    *(
        NodeCase(
            "AveragePool",
            22,
            [X1],
            {"kernel_shape": [2], "pads": [3, 2], "count_include_pad": counts},
            expected=[beyond_kernel(X1, counts)],
            label=f"wide padding {counts}",
            wrong={"ONNX Runtime": "it refuses padding that is not smaller than the kernel"},
        )
        for counts in (0, 1)
    ),
    *(
        NodeCase(
            "AveragePool",
            22,
            [X2],
            {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": mode},
            label=mode,
        )
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ),
]
TIES = np.array([[[[1, 3, 3, 2], [3, 3, 0, 2], [5, 1, 5, 5]]]], np.float32)
PAIR = {"kernel_shape": [2, 2]}
MAXIMUM = [
    *(NodeCase("MaxPool", version, [X2], WINDOW) for version in (1, 8, 10, 11, 12, 22)),
    *(
        NodeCase(
            "MaxPool",
            version,
            [data],
            {"kernel_shape": kernel, "storage_order": order},
            outputs=2,
            expected=[greatest(data, kernel), places(data, kernel, order)],
            wrong={
                "ONNX's evaluator": "it takes the last of equal elements, and ignores the order"
            },
            label=f"{data.ndim - 2}-D-order-{order}",
        )
        for version, data, kernel in ((8, TIES, [2, 2]), (22, X3, [2, 2, 2]))
        for order in (0, 1)
    ),
    NodeCase("MaxPool", 12, [(X1 * 4).astype(np.int8)], {"kernel_shape": [3]}, label="i8"),
    NodeCase("MaxPool", 12, [np.arange(9, dtype=np.uint8).reshape(1, 1, 9)], {"kernel_shape": [4]}),
    NodeCase(
        "MaxPool",
        12,
        [X2],
        {"kernel_shape": [2, 2], "dilations": [2, 3], "strides": [2, 2], "ceil_mode": 1},
        outputs=2,
        label="ceil",
    ),
]
NORM = [
    NodeCase("LpPool", 1, [X1], {"kernel_shape": [2]}, expected=[pair_norms(X1, 2)]),
    NodeCase("LpPool", 1, [X1], {"kernel_shape": [2], "p": 1.5}, expected=[pair_norms(X1, 1.5)]),
    *(NodeCase("LpPool", version, [X2], {**WINDOW, "p": 3}) for version in (2, 11, 18, 22)),
    NodeCase("LpPool", 18, [X2], {"kernel_shape": [2, 2], "dilations": [2, 2], "p": 1}),
]
X4 = floats(1, 2, 2, 3, 2, 2)
SPATIAL = {3: 2, 4: (2, 3), 5: (2, 3, 4), 6: (2, 3, 4, 5)}
GLOBAL = [
    NodeCase("GlobalAveragePool", version, [data], expected=[data.mean(SPATIAL[n], keepdims=True)])
    for version, data, n in ((1, X1, 3), (1, X2, 4), (22, X3, 5), (22, X4, 6))
]
GLOBAL += [
    NodeCase(
        "GlobalMaxPool",
        version,
        [data],
        expected=[data.max(SPATIAL[data.ndim], keepdims=True)],
        wrong={"ONNX's evaluator": "it reduces two axes, whatever the rank is"},
    )
    for version, data in ((1, X1), (1, X2), (22, X3), (22, X4))
]
GLOBAL += [
    NodeCase("GlobalAveragePool", 22, [X1[0]], expected=[X1[0]], label="matrix"),
    NodeCase("GlobalLpPool", 1, [X2], {"p": 2.5}, expected=[norms(X2, 2.5, (2, 3)).astype("f4")]),
    NodeCase("GlobalLpPool", 2, [X3], {"p": 3}, expected=[norms(X3, 3, (2, 3, 4)).astype("f4")]),
    NodeCase("GlobalLpPool", 22, [X1], expected=[norms(X1, 2, 2).astype("f4")]),
    NodeCase("GlobalLpPool", 22, [X4], expected=[norms(X4, 2, (2, 3, 4, 5)).astype("f4")]),
    NodeCase("GlobalLpPool", 22, [X1[0]], expected=[np.abs(X1[0])], label="matrix"),
]
MAXIMA = np.array([[[[1, 2], [3, 4]]]], np.float32)
PLACES = np.array([[[[5, 7], [13, 15]]]], np.int64)
SQUARES = {"kernel_shape": [2, 2], "strides": [2, 2]}
UNPOOLED = np.zeros((1, 1, 4, 4), np.float32)
UNPOOLED[0, 0, 1::2, 1::2] = MAXIMA[0, 0]
LARGER = np.array([1, 1, 5, 5])
UNPOOL = [
    *(
        NodeCase("MaxUnpool", version, [MAXIMA, PLACES], SQUARES, expected=[UNPOOLED])
        for version in (9, 11, 22)
    ),
    NodeCase(
        "MaxUnpool",
        11,
        [MAXIMA, PLACES, LARGER],
        SQUARES,
        expected=[np.pad(UNPOOLED, ((0, 0), (0, 0), (0, 1), (0, 1)))],
        wrong={"ONNX Runtime": "it counts places in the larger tensor; ONNX's own case does not"},
        label="larger",
    ),
]
CASES = [*AVERAGE, *MAXIMUM, *NORM, *GLOBAL, *UNPOOL]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_all_versions_have_a_case():
    tested = {case.pair for case in CASES}
    wanted = {case.operator for case in CASES}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in wanted:
            assert ("", schema.name, schema.since_version) in tested


def model(operator, shape, opset=22, inputs=(), **attributes):
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    infos += [
        helper.make_tensor_value_info(f"i{k}", TensorProto.INT64, one)
        for k, one in enumerate(inputs)
    ]
    node = helper.make_node(operator, [info.name for info in infos], ["y"], **attributes)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", infos, [output])
    sets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=sets).SerializeToString()


def test_symbolic_extents_need_no_macro():
    graph = from_onnx(model("MaxPool", ("N", 3, "H", "W"), kernel_shape=[2, 2], strides=[2, 2]))
    assert [node.operator for node in graph.nodes] == ["max_pool2d"]


def test_number_of_incomplete_windows_is_left_to_the_run():
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}
    graph = from_onnx(model("MaxPool", ("N", 3, "H", 8), **attributes))
    assert graph.nodes[0].operator == "onnx.MaxPool"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (model("LpPool", (1, 2, 5), opset=1), "its attribute kernel_shape is missing"),
        (model("LpPool", (1, 2, 5), kernel_shape=[2], p=0), "its attribute p is 0"),
        (model("GlobalMaxPool", (5,)), "fewer than 2 dimensions"),
        (
            model("MaxUnpool", (1, 1, 2), 22, [(1, 1, 2), (2,)], kernel_shape=[2]),
            None,
        ),
    ],
)
def test_what_does_not_fit(data, message):
    if message is None:
        assert from_onnx(data).nodes[0].operator == "onnx.MaxUnpool"
        return
    with pytest.raises(UserError, match=message):
        from_onnx(data)


def test_shape_of_another_rank():
    case = NodeCase("MaxUnpool", 11, [MAXIMA, PLACES, np.array([5, 5])], SQUARES, constants=(2,))
    with pytest.raises(UserError, match=r"its output_shape is \[5, 5\]"):
        from_onnx(case.model().SerializeToString())
