import numpy as np
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check


def floats(*shape, seed=0, dtype=np.float32):
    count = int(np.prod(shape))
    return (((np.arange(count) * 7 + seed) % 23) / 11 - 1).reshape(shape).astype(dtype)


QUERY, KEY, VALUE = floats(2, 4, 3, 2), floats(2, 2, 5, 2, seed=1), floats(2, 2, 5, 3, seed=2)
PAST = [floats(2, 2, 2, 2, seed=3), floats(2, 2, 2, 3, seed=4)]
FLAT = [floats(2, 3, 8), floats(2, 5, 4, seed=1), floats(2, 5, 6, seed=2)]
HEADS = {"q_num_heads": 4, "kv_num_heads": 2}
BIAS = floats(3, 5, seed=5)
KEPT = (np.arange(15) % 4 != 1).reshape(3, 5)
LENGTHS = np.array([4, 2], np.int64)
CASES = [
    NodeCase("Attention", 23, [QUERY, KEY, VALUE, BIAS], {"is_causal": 1}, label="bias"),
    NodeCase("Attention", 23, [QUERY, KEY, VALUE, KEPT, *PAST][:3], {"softcap": 0.5}),
    NodeCase("Attention", 23, FLAT, {**HEADS, "scale": 0.3}, label="flat"),
    NodeCase(
        "Attention",
        23,
        [QUERY, KEY, VALUE, floats(3, 7), *PAST],
        {"is_causal": 1, "qk_matmul_output_mode": 3},
        outputs=4,
        label="past",
    ),
    *(
        NodeCase(
            "Attention",
            24,
            [QUERY, KEY, VALUE, KEPT[:, :4], None, None, LENGTHS],
            {"is_causal": 1, "qk_matmul_output_mode": mode},
            outputs=4,
            label=f"lengths-mode-{mode}",
        )
        for mode in range(4)
    ),
    NodeCase(
        "Attention",
        24,
        [QUERY, KEY, VALUE, BIAS, None, None, LENGTHS],
        {"softmax_precision": TensorProto.DOUBLE},
        label="double",
    ),
    NodeCase(
        "Attention",
        25,
        [*FLAT, BIAS],
        {**HEADS, "left_window_size": 1, "right_window_size": 1, "qk_matmul_output_mode": 3},
        outputs=4,
        label="window",
    ),
    NodeCase(
        "Attention",
        25,
        [QUERY, KEY, VALUE, None, *PAST],
        {"left_window_size": 2, "is_causal": 1},
        outputs=3,
        label="window-past",
    ),
]
RAW = np.matmul(np.repeat(KEY, 2, 1), QUERY.swapaxes(2, 3)).swapaxes(2, 3) / np.sqrt(np.float32(2))
CAP = {"softcap": 0.5}
CASES += [
    NodeCase(
        "Attention",
        23,
        [QUERY, KEY, VALUE],
        {**CAP, "qk_matmul_output_mode": mode},
        outputs=4,
        label=f"cap-mode-{mode}",
    )
    for mode in (1, 2, 3)
]
ANGLES = floats(6, 2, seed=6)
CACHE = [np.cos(ANGLES), np.sin(ANGLES)]
PLACES = np.array([[0, 2, 4], [5, 1, 3]], np.int64)
X4, X3 = floats(2, 2, 3, 4), floats(2, 3, 8)
CASES += [
    NodeCase("RotaryEmbedding", 23, [X4, *CACHE, PLACES]),
    NodeCase("RotaryEmbedding", 23, [X3, *CACHE, PLACES], {"num_heads": 2, "interleaved": 1}),
    NodeCase(
        "RotaryEmbedding",
        23,
        [X3, *(one[PLACES][..., :1] for one in CACHE)],
        {"num_heads": 2, "rotary_embedding_dim": 2},
        label="partial",
    ),
]
STATE = floats(2, 2, 2, 3, seed=7)
LINEAR = [floats(2, 4, 8), floats(2, 4, 4, seed=1), floats(2, 4, 6, seed=2)]
DECAY, RATE = -np.abs(floats(2, 4, 4, seed=3)), np.abs(floats(2, 4, 2, seed=4))
# ONNX defines these two operators by nodes.
CASES += [
    NodeCase("LinearAttention", 27, [*LINEAR, *more], {**HEADS, "update_rule": rule}, outputs=2)
    for rule, more in (
        ("linear", []),
        ("gated", [STATE, DECAY]),
        ("delta", [None, None, RATE]),
        ("gated_delta", [STATE, DECAY[..., :2], RATE]),
    )
]
CASES += [
    NodeCase("FlexAttention", 1, [QUERY, KEY, VALUE], {"scale": 0.3}, domain="ai.onnx.preview"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_raw_scores_are_not_capped():
    """The fourth output holds the products before the limit in mode 0, as the text says."""
    case = NodeCase("Attention", 23, [QUERY, KEY, VALUE], CAP, outputs=4)
    scores = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())[3]
    np.testing.assert_allclose(scores, RAW, rtol=1e-5, atol=1e-6)


def test_one_column_of_a_mask_counts_for_all_keys_before_version_24():
    column = floats(3, 1, seed=8)
    results = [
        onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())[0]
        for case in (
            NodeCase("Attention", 23, [QUERY, KEY, VALUE, column]),
            NodeCase("Attention", 23, [QUERY, KEY, VALUE]),
            NodeCase("Attention", 24, [QUERY, KEY, VALUE, column]),
        )
    ]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
    first = np.repeat(VALUE[:, :, :1], 2, axis=1)
    np.testing.assert_allclose(results[2], np.broadcast_to(first, results[2].shape), rtol=1e-6)


def test_values_of_another_type():
    case = NodeCase("Attention", 24, [QUERY, KEY, VALUE.astype("f2")], outputs=3)
    y, keys, values = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())
    assert (y.dtype, keys.dtype, values.dtype) == (np.float32, np.float32, np.float16)
    np.testing.assert_array_equal(values, VALUE.astype("f2"))


def convert(operator, shapes, opset=25, **attributes):
    """Convert a node whose inputs are floats; those of an Attention from place 6 on are int64."""
    infos = [
        helper.make_tensor_value_info(
            f"x{k}", TensorProto.INT64 if k == 6 else TensorProto.FLOAT, shape
        )
        for k, shape in enumerate(shapes)
        if shape is not None
    ]
    names = ["" if shape is None else f"x{k}" for k, shape in enumerate(shapes)]
    node = helper.make_node(operator, names, ["y"], **attributes)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", infos, [output])
    sets = [helper.make_opsetid("", opset)]
    return from_onnx(helper.make_model(graph, opset_imports=sets).SerializeToString())


def operators(graph):
    return [node.operator for node in graph.nodes]


SHAPES = [("N", 4, "S", 8), ("N", 4, "T", 8), ("N", 4, "T", 8)]


def test_symbols_need_no_macro():
    assert operators(convert("Attention", SHAPES, is_causal=1)) == ["attention"]


@pytest.mark.parametrize(
    ("more", "attributes"),
    [([("S", "U")], {}), ([None, None, None, ("N",)], {}), ([], {"left_window_size": 2})],
)
def test_masks_of_symbolic_extents_are_left_to_the_run(more, attributes):
    assert "onnx.Attention" in operators(convert("Attention", [*SHAPES, *more], **attributes))


FOUR = [(1, 2, 3, 4)] * 3
THREE = [(1, 3, 8)] * 3


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "message"),
    [
        ("Attention", [*FOUR[:2], THREE[0]], {}, "its inputs are"),
        ("Attention", THREE, {"q_num_heads": 2}, "its attribute kv_num_heads is missing"),
        ("Attention", [*FOUR, None, FOUR[0]], {}, "only one of past_key and past_value"),
        ("Attention", [*FOUR, None, FOUR[0], FOUR[0], (1,)], {}, "both past_key and nonpad"),
        ("Attention", FOUR, {"left_window_size": -2}, "its attribute left_window_size is -2"),
        ("RotaryEmbedding", [(1, 3, 8), (1, 3, 2), (1, 3, 2)], {}, "divided into 0 heads"),
    ],
)
def test_what_does_not_fit(operator, shapes, attributes, message):
    with pytest.raises(UserError, match=message):
        convert(operator, shapes, **attributes)


def test_unknown_content_of_the_fourth_output():
    case = NodeCase("Attention", 23, [QUERY, KEY, VALUE], {"qk_matmul_output_mode": 4}, outputs=4)
    with pytest.raises(UserError, match="its attribute qk_matmul_output_mode is 4"):
        from_onnx(case.model().SerializeToString())
