import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check

SCORES = (((np.arange(24) * 7) % 23) / 11 - 1).reshape(2, 4, 3).astype(np.float32)
LOGARITHMS = SCORES - np.log(np.exp(SCORES).sum(1, keepdims=True))
LABELS = np.array([[0, 3, 1], [2, 2, 0]], np.int64)
WEIGHTS = np.array([0.5, 1, 2, 0.25], np.float32)


def loss(weights=None, ignored=None, reduction="mean"):
    """Return the loss of LOGARITHMS, by definition."""
    factors = np.ones(4, np.float32) if weights is None else weights
    chosen = np.take_along_axis(LOGARITHMS, LABELS[:, None], axis=1)[:, 0]
    counts = factors[LABELS] * (ignored != LABELS)
    losses = -chosen * counts
    if reduction == "none":
        return losses
    total = losses.sum()
    return np.float32(total / counts.sum() if reduction == "mean" else total)


WAYS = (
    (None, None, "mean"),
    (WEIGHTS, None, "mean"),
    (WEIGHTS, 2, "mean"),
    (WEIGHTS, 2, "none"),
    (None, 0, "sum"),
)
VERSIONS = {"NegativeLogLikelihoodLoss": (12, 13, 22), "SoftmaxCrossEntropyLoss": (12, 13)}
CASES = [
    NodeCase(
        operator,
        version,
        [
            LOGARITHMS if operator.startswith("Negative") else SCORES,
            LABELS,
            *([] if weights is None else [weights]),
        ],
        {"reduction": reduction, **({} if ignored is None else {"ignore_index": ignored})},
        expected=[loss(weights, ignored, reduction)],
        label=f"{reduction}-{ignored}-{weights is not None}",
    )
    for operator, versions in VERSIONS.items()
    for version in versions
    for weights, ignored, reduction in WAYS
]
CASES.append(
    NodeCase(
        "SoftmaxCrossEntropyLoss",
        13,
        [SCORES, LABELS],
        outputs=2,
        expected=[loss(), LOGARITHMS],
        label="logarithms",
    )
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_all_versions_have_a_case():
    tested = {case.pair for case in CASES}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in VERSIONS:
            assert ("", schema.name, schema.since_version) in tested


def convert(scores, labels, **attributes):
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, scores),
        helper.make_tensor_value_info("t", TensorProto.INT64, labels),
    ]
    node = helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["y"], **attributes)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", infos, [output])
    sets = [helper.make_opsetid("", 13)]
    return from_onnx(helper.make_model(graph, opset_imports=sets).SerializeToString())


def test_symbolic_batch_needs_no_macro():
    graph = convert(("N", 4), ("N",))
    assert [node.operator for node in graph.nodes] == ["cross_entropy"]


def test_symbols_that_may_be_equal_are_left_to_the_run():
    assert convert(("N", 4), ("M",)).nodes[0].operator == "onnx.SoftmaxCrossEntropyLoss"


def test_unknown_reduction():
    with pytest.raises(UserError, match="reduction"):
        convert((2, 4), (2,), reduction="all")
