import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check


def floats(*shape, dtype=np.float32):
    count = int(np.prod(shape))
    return ((np.arange(count) * 7 % 23 - 11) / 4).reshape(shape).astype(dtype)


X = floats(2, 4, 3, 2)
SCALE, SHIFT, MEAN = floats(4), floats(4) + 1, floats(4) / 2
VARIANCE = np.array([0.5, 1, 2, 4], np.float32)
PARTS = [SCALE, SHIFT, MEAN, VARIANCE]
AXES = (0, 2, 3)


def per_channel(part):
    return part.reshape(-1, 1, 1).astype(float)


def scaled(mean, variance, epsilon=1e-5):
    factor = per_channel(SCALE) / np.sqrt(per_channel(variance) + epsilon)
    return ((X - per_channel(mean)) * factor + per_channel(SHIFT)).astype(np.float32)


def trained(momentum=0.9):
    """Return the result in training, running statistics, and those of the batch."""
    mean, variance = X.mean(AXES), X.var(AXES)
    running = [MEAN * momentum + mean * (1 - momentum), VARIANCE * momentum]
    running[1] = running[1] + variance * (1 - momentum)
    both = [one.astype(np.float32) for one in (*running, mean, variance)]
    return [scaled(mean, variance), *both]


OLD_TEXT = {
    "ONNX Runtime": "it has no kernel for this mode",
    "ONNX's evaluator": "it normalizes by the statistics of the batch, or fails",
}
RAW = floats(3, 2, 2)
PER_ELEMENT = [floats(2, 2), floats(2, 2), floats(2, 2) / 3, np.abs(floats(2, 2)) + 1]
SPREAD = np.sqrt(PER_ELEMENT[3] + 1e-5)
NON_SPATIAL = (RAW - PER_ELEMENT[2]) / SPREAD * PER_ELEMENT[0] + PER_ELEMENT[1]
ELEMENT_TRAINED = (RAW - RAW.mean(0)) / np.sqrt(RAW.var(0) + 1e-5)
ELEMENT_TRAINED = ELEMENT_TRAINED * PER_ELEMENT[0] + PER_ELEMENT[1]
BATCH = [
    NodeCase(
        "BatchNormalization",
        1,
        [X, *PARTS],
        {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1},
        expected=[scaled(MEAN, VARIANCE)],
        wrong=OLD_TEXT,
    ),
    NodeCase(
        "BatchNormalization",
        6,
        [X, *PARTS],
        outputs=5,
        expected=trained(),
        wrong=OLD_TEXT,
        label="training",
    ),
    NodeCase(
        "BatchNormalization",
        7,
        [X, *PARTS],
        {"epsilon": 0.5},
        wrong=OLD_TEXT,
        expected=[scaled(MEAN, VARIANCE, 0.5)],
    ),
    NodeCase(
        "BatchNormalization",
        7,
        [RAW, *PER_ELEMENT],
        {"spatial": 0},
        expected=[NON_SPATIAL.astype(np.float32)],
        wrong=OLD_TEXT,
        label="elements",
    ),
    NodeCase(
        "BatchNormalization",
        7,
        [RAW, *PER_ELEMENT],
        {"spatial": 0, "momentum": 0.0},
        expected=[ELEMENT_TRAINED.astype("f4"), RAW.mean(0), RAW.var(0).astype("f4")],
        outputs=3,
        wrong=OLD_TEXT,
        label="elements-training",
    ),
    NodeCase(
        "BatchNormalization",
        9,
        [X, *PARTS],
        expected=[scaled(MEAN, VARIANCE)],
        wrong={"ONNX's evaluator": "it is in training, though only the result is used"},
    ),
    NodeCase(
        "BatchNormalization",
        9,
        [X, *PARTS],
        {"momentum": 0.5},
        outputs=5,
        expected=trained(0.5),
        wrong=OLD_TEXT,
        label="training",
    ),
    NodeCase("BatchNormalization", 14, [X, *PARTS]),
    NodeCase(
        "BatchNormalization",
        14,
        [X, *PARTS],
        {"training_mode": 1, "momentum": 0.75},
        outputs=3,
        expected=trained(0.75)[:3],
        wrong={"ONNX Runtime": "it has no kernel for training"},
        label="training",
    ),
    NodeCase(
        "BatchNormalization",
        15,
        [floats(5), np.float32([2]), np.float32([1]), np.float32([0.5]), np.float32([4])],
        expected=[(floats(5) - 0.5) / np.float32(np.sqrt(4 + 1e-5)) * 2 + 1],
        wrong={
            "ONNX's evaluator": "it takes each element of a vector as a channel",
            "ONNX Runtime": "it takes each element of a vector as a channel",
        },
        label="vector",
    ),
    NodeCase(
        "BatchNormalization",
        15,
        [X.astype("f2"), SCALE.astype("f2"), SHIFT.astype("f2"), MEAN, VARIANCE],
        expected=[scaled(MEAN, VARIANCE).astype("f2")],
        wrong={"ONNX's evaluator": "its result is not of the type of X"},
        rtol=2e-3,
        atol=2e-3,
        label="f16",
    ),
]
INSTANCE = [
    NodeCase("InstanceNormalization", version, [X, SCALE, SHIFT], attributes)
    for version, attributes in ((6, {"epsilon": 0.1}), (22, {}))
]


def standard(data, axes, epsilon):
    data = data.astype(float)
    mean = data.mean(axes, keepdims=True)
    return (data - mean) / np.sqrt(data.var(axes, keepdims=True) + epsilon)


INSTANCE_1 = standard(X, (2, 3), 1e-5) * per_channel(SCALE) + per_channel(SHIFT)
INSTANCE.append(
    NodeCase(
        "InstanceNormalization",
        1,
        [X, SCALE, SHIFT],
        {"consumed_inputs": [0, 0, 0]},
        expected=[INSTANCE_1.astype(np.float32)],
    )
)
OF_GROUPS = standard(X.reshape(2, 2, -1), 2, 1e-5).reshape(X.shape)
FACTORS = [np.float32([2, -3]), np.float32([0.5, 1])]
WIDE = [np.repeat(part, 2).reshape(-1, 1, 1) for part in FACTORS]
GROUPS = [
    NodeCase(
        "GroupNormalization",
        18,
        [X, *FACTORS],
        {"num_groups": 2},
        expected=[(OF_GROUPS * WIDE[0] + WIDE[1]).astype(np.float32)],
    ),
    NodeCase("GroupNormalization", 21, [X, SCALE, SHIFT], {"num_groups": 2}),
]
LAYER = [
    NodeCase("LayerNormalization", 17, [X, floats(2), floats(2)]),
    NodeCase("LayerNormalization", 17, [X, floats(3, 2)], {"axis": 2, "epsilon": 0.5}, outputs=3),
    NodeCase("LayerNormalization", 17, [X, floats(4, 1, 2), floats(2)], {"axis": 1}, label="wide"),
    NodeCase("RMSNormalization", 23, [X, floats(3, 2)], {"axis": -2}),
    NodeCase("RMSNormalization", 23, [X, floats(2)], {"axis": 1, "epsilon": 0.1}, label="wide"),
]
NEIGHBOURS = floats(2, 5, 2)


def locally_normalized():
    """Return LRN of size 4: a channel has one neighbour before it, and two behind."""
    squares = np.pad(NEIGHBOURS.astype(float) ** 2, ((0, 0), (1, 2), (0, 0)))
    sums = sum(squares[:, k : k + 5] for k in range(4))
    return (NEIGHBOURS / (2 + 0.5 / 4 * sums) ** 0.75).astype(np.float32)


OTHER = [
    *(
        NodeCase(
            "LRN",
            version,
            [NEIGHBOURS],
            {"size": 4, "alpha": 0.5, "bias": 2.0},
            expected=[locally_normalized()],
            wrong={"ONNX's evaluator": "it takes the neighbours of the first sample for all"},
        )
        for version in (1, 13)
    ),
    *(
        NodeCase(
            "LpNormalization",
            version,
            [X],
            {"axis": 1, "p": 1},
            expected=[X / np.abs(X).sum(1, keepdims=True)],
            wrong={"ONNX's evaluator": "it adds up the elements, not their sizes"},
        )
        for version in (1, 22)
    ),
    *(NodeCase("LpNormalization", version, [X], {"axis": 1, "p": 2}) for version in (1, 22)),
    NodeCase("LpNormalization", 22, [np.zeros((2, 3), "f4")], expected=[np.zeros((2, 3), "f4")]),
    *(
        NodeCase("MeanVarianceNormalization", version, [X], attributes)
        for version, attributes in ((9, {}), (13, {"axes": [1, -1]}))
    ),
]
CASES = [*BATCH, *INSTANCE, *GROUPS, *LAYER, *OTHER]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_all_versions_have_a_case():
    tested = {case.pair for case in CASES}
    wanted = {case.operator for case in CASES}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in wanted:
            assert ("", schema.name, schema.since_version) in tested


def convert(operator, shapes, opset=23, **attributes):
    infos = [
        helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, shape)
        for k, shape in enumerate(shapes)
    ]
    node = helper.make_node(operator, [info.name for info in infos], ["y"], **attributes)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", infos, [output])
    sets = [helper.make_opsetid("", opset)]
    return from_onnx(helper.make_model(graph, opset_imports=sets).SerializeToString())


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "made"),
    [
        ("BatchNormalization", [("N", 3, "H", "W"), (3,), (3,), (3,), (3,)], {}, "batch_norm"),
        ("LayerNormalization", [("N", "M", 3), (3,), (3,)], {}, "layer_norm"),
        ("RMSNormalization", [("N", "M", 3), (3,)], {}, "rms_norm"),
        ("GroupNormalization", [("N", 4, "W"), (4,), (4,)], {"num_groups": 2}, "group_norm"),
    ],
)
def test_symbols_need_no_macro(operator, shapes, attributes, made):
    graph = convert(operator, shapes, **attributes)
    assert [node.operator for node in graph.nodes] == [made]


def test_normalized_axes_may_be_symbolic():
    graph = convert("LayerNormalization", [("N", "M", 3), (1, 3)], axis=1)
    assert not any("onnx." in node.operator for node in graph.nodes)
    assert graph.outputs[0].shape == ("N", "M", 3)


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "message"),
    [
        ("GroupNormalization", [(1, 4, 2), (3,), (3,)], {"num_groups": 3}, "num_groups is 3"),
        ("LayerNormalization", [(1, 4), (4, 1)], {"stash_type": 7}, "stash_type is int64"),
        ("LayerNormalization", [(1, 4), (4,)], {"axis": 2}, "its axis 2 is out of range"),
        ("LpNormalization", [(1, 4)], {"p": 3}, "degree"),
    ],
)
def test_what_does_not_fit(operator, shapes, attributes, message):
    with pytest.raises(UserError, match=message):
        convert(operator, shapes, opset=18, **attributes)
