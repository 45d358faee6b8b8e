from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.models import make_model, single
from tests.frontend.onnx.converters import cases
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
IFS = (1, 11, 13, 16, 19, 21, 23, 24, 25)
SCANS = (9, 11, 16, 19, 21, 23, 24, 25)


def graph(
    nodes: Sequence[Any],
    inputs: dict[str, Any],
    outputs: dict[str, int],
    constants: dict[str, Any] | None = None,
) -> onnx.GraphProto:
    """A graph whose inputs are name -> (element type, shape)."""
    return helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(name, *one) for name, one in inputs.items()],
        [helper.make_tensor_value_info(name, code, None) for name, code in outputs.items()],
        [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )


def model_of(body: onnx.GraphProto, version: int) -> onnx.ModelProto:
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def check(model: onnx.ModelProto, feeds: dict[str, Any], expected: Sequence[Any] = ()) -> None:
    """The outputs are those that are expected, or those of ONNX Runtime."""
    made = onnx_backend.run_model(model, feeds, "INTERP")
    if not expected:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        expected = session.run(None, feeds)
    for one, right in zip(made, expected, strict=True):
        assert one.shape == np.shape(right)
        np.testing.assert_array_equal(one, right)


def constant_of(name: str, *elements: float) -> Any:
    tensor = onnx.numpy_helper.from_array(np.array(elements, np.float32))
    return graph([single("Constant", outputs=[name], value=tensor)], {}, {name: FLOAT})


BODY = graph(
    [
        single("Add", "s", "s", outputs=["t"]),
        single("Relu", "t", outputs=["u"]),
        single("Not", "c", outputs=["n"]),
        single("Not", "n", outputs=["goes_on"]),
    ],
    {"i": (INT64, []), "c": (BOOL, []), "s": (FLOAT, [2])},
    {"goes_on": BOOL, "t": FLOAT, "u": FLOAT},
)
SCANNED = graph(
    [single("Sub", "s", "x", outputs=["t"]), single("Relu", "t", outputs=["u"])],
    {"s": (FLOAT, [2]), "x": (FLOAT, [2])},
    {"t": FLOAT, "u": FLOAT},
)
START = np.array([1, -1], np.float32)
STEPS = np.array([[1, 2], [-3, 4]], np.float32)
BRANCHES = {"then_branch": constant_of("a", 1, 2), "else_branch": constant_of("b", 3)}
SUBTRACTED = [np.array([3, -7], np.float32), np.array([[0, 0], [3, 0]], np.float32)]
CASES = [
    *(
        NodeCase("If", version, [np.array(flag)], BRANCHES, expected=[right], label=str(flag))
        for version in IFS
        for flag, right in ((True, np.float32([1, 2])), (False, np.float32([3])))
    ),
    *(
        NodeCase(
            "Loop",
            version,
            [np.array(2), np.array(True), START],
            {"body": BODY},
            expected=[START * 4, np.float32([[2, 0], [4, 0]])],
            outputs=2,
        )
        for version in (7, *IFS[1:])  # Add broadcasts by itself since version 7
    ),
    *(
        NodeCase(
            "Scan",
            version,
            [START, STEPS],
            {"body": SCANNED, "num_scan_inputs": 1},
            expected=SUBTRACTED,
            outputs=2,
        )
        for version in SCANS
    ),
    NodeCase(
        "Scan",
        8,
        [None, START[None], STEPS[None]],
        {"body": SCANNED, "num_scan_inputs": 1},
        expected=[one[None] for one in SUBTRACTED],
        outputs=2,
        wrong={EVALUATOR: "it has no batch"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case: NodeCase) -> None:
    cases.check(case)


def if_model(version: int, constants: dict[str, Any] | None = None) -> onnx.ModelProto:
    """Branches of different ranks, which capture different values."""
    then = graph([single("Relu", "x", outputs=["a"])], {}, {"a": FLOAT})
    other = graph([single("Concat", "y", "x", outputs=["b"], axis=0)], {}, {"b": FLOAT})
    node = single("If", "c", outputs=["z"], then_branch=then, else_branch=other)
    given = {} if constants else {"c": (BOOL, [])}
    given |= {"x": (FLOAT, ["N"]), "y": (FLOAT, [2])}
    return model_of(graph([node], given, {"z": FLOAT}, constants), version)


X, Y = np.array([-1, 2, 3], np.float32), np.array([7, 8], np.float32)


@pytest.mark.parametrize("version", IFS)
def test_if_runs_one_branch(version: int) -> None:
    for flag, right in ((True, [0, 2, 3]), (False, [7, 8, -1, 2, 3])):
        check(if_model(version), {"c": np.array(flag), "x": X, "y": Y}, [np.array(right)])


def test_if_keeps_the_branch_that_is_known() -> None:
    for flag, operator in ((True, "relu"), (False, "onnx.Concat")):
        model = if_model(13, {"c": np.array(flag)})
        (node,) = from_onnx(model.SerializeToString()).nodes
        assert (node.operator, node.name) == (operator, "z")
        right = np.maximum(X, 0) if flag else np.concatenate([Y, X])
        check(model, {"x": X, "y": Y}, [right])


def loop_model(version: int, *, shape: Any = (1,), trips: str = "n") -> onnx.ModelProto:
    """Appends the number of the iteration, and collects the sums so far."""
    body = graph(
        [
            single("Unsqueeze", "i", *(["zero"] if version >= 13 else []), outputs=["j"])
            if version >= 13
            else single("Unsqueeze", "i", outputs=["j"], axes=[0]),
            single("Concat", "s", "j", outputs=["t"], axis=0),
            single("Add", "total", "j", outputs=["next"]),
            single("Less", "next", "most", outputs=["goes_on"]),
        ],
        {"i": (INT64, []), "c": (BOOL, []), "s": (INT64, None), "total": (INT64, [1])},
        {"goes_on": BOOL, "t": INT64, "next": INT64, "next2": INT64},
        {"zero": np.array([0])},
    )
    body.node.append(single("Identity", "next", outputs=["next2"]))
    node = single("Loop", trips, "go", "s0", "total0", outputs=["s", "last", "sums"], body=body)
    given = {"n": (INT64, []), "go": (BOOL, []), "s0": (INT64, shape), "total0": (INT64, [1])}
    outer = graph(
        [node], given, {"s": INT64, "last": INT64, "sums": INT64}, {"most": np.array([6])}
    )
    return model_of(outer, version)


# In version 10, Loop has its first form, and Concat and Less take integers.
@pytest.mark.parametrize("version", [10, *IFS[1:]])
def test_loop_carries_a_tensor_that_grows(version: int) -> None:
    start = {"go": np.array(True), "s0": np.array([9]), "total0": np.array([0])}
    rows = {
        3: ([9, 0, 1, 2], [3], [[0], [1], [3]]),
        9: ([9, 0, 1, 2, 3], [6], [[0], [1], [3], [6]]),
    }
    for trips, right in rows.items():
        check(loop_model(version), {"n": np.array(trips), **start}, list(map(np.array, right)))


def test_loop_that_never_runs_returns_what_it_got() -> None:
    start = {"n": np.array(0), "s0": np.array([9]), "total0": np.array([4])}
    right = [np.array([9]), np.array([4]), np.zeros((0, 1))]
    check(loop_model(13), {"go": np.array(True), **start}, right)
    endless = loop_model(13, trips="")
    check(endless, {"go": np.array(False), **start}, right)


def scan_model(version: int, **attributes: Any) -> onnx.ModelProto:
    """Sums along an axis of x, beginning with s."""
    body = graph(
        [single("Add", "s", "x", outputs=["t"]), single("Mul", "t", "two", outputs=["u"])],
        {"s": (FLOAT, [2]), "x": (FLOAT, [2])},
        {"t": FLOAT, "u": FLOAT},
    )
    node = single(
        "Scan", "s0", "x0", outputs=["last", "sums"], body=body, num_scan_inputs=1, **attributes
    )
    given = {"s0": (FLOAT, [2]), "x0": (FLOAT, ["N", 2])}
    constants = {"two": np.array([2, 2], np.float32)}
    return model_of(graph([node], given, {"last": FLOAT, "sums": FLOAT}, constants), version)


@pytest.mark.parametrize("version", SCANS)
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_directions": [1]},
        {"scan_output_directions": [1]},
        {"scan_output_axes": [1]},
    ],
    ids=lambda a: next(iter(a), "plain"),
)
def test_scan(version: int, attributes: dict[str, Any]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    check(scan_model(version, **attributes), {"s0": Y, "x0": x})


def test_scan_along_a_negative_axis() -> None:
    body = graph([single("Relu", "x", outputs=["y"])], {"x": (FLOAT, [2])}, {"y": FLOAT})
    node = single("Scan", "x0", outputs=["y0"], body=body, num_scan_inputs=1, scan_input_axes=[-1])
    model = model_of(graph([node], {"x0": (FLOAT, [2, "N"])}, {"y0": FLOAT}), 11)
    x = np.array([[1, -2, 3], [-4, 5, 6]], np.float32)
    check(model, {"x0": x}, [np.maximum(x, 0).T])
    assert from_onnx(model.SerializeToString()).outputs[0].shape == ("N", 2)


@pytest.mark.parametrize("has_lengths", [False, True])
def test_scan_8_goes_over_a_batch(has_lengths: bool) -> None:
    body = graph(
        [single("Add", "s", "x", outputs=["t"]), single("Identity", "t", outputs=["u"])],
        {"s": (FLOAT, [1]), "x": (FLOAT, [1])},
        {"t": FLOAT, "u": FLOAT},
    )
    lengths = "n" if has_lengths else ""
    node = single(
        "Scan", lengths, "s0", "x0", outputs=["last", "sums"], body=body, num_scan_inputs=1
    )
    given = {"n": (INT64, ["B"]), "s0": (FLOAT, ["B", 1]), "x0": (FLOAT, ["B", 3, 1])}
    model = model_of(graph([node], given, {"last": FLOAT, "sums": FLOAT}), 8)
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3, 1)
    feeds = {"n": np.array([1, 2]), "s0": np.array([[0], [10]], np.float32), "x0": x}
    sums = [[[1], [3], [6]], [[14], [19], [25]]]
    last = [[6], [25]]
    if has_lengths:
        sums, last = [[[1], [0], [0]], [[14], [19], [0]]], [[1], [19]]
    check(model, feeds, [np.array(last), np.array(sums)])


def test_subgraphs_in_each_other_read_all_outer_values() -> None:
    inner = graph([single("Add", "s", "x", outputs=["r"])], {}, {"r": FLOAT})
    other = graph([single("Mul", "s", "x", outputs=["r2"])], {}, {"r2": FLOAT})
    body = graph(
        [
            single("If", "flag", outputs=["t"], then_branch=inner, else_branch=other),
            single("Identity", "c", outputs=["c2"]),
        ],
        {"i": (INT64, []), "c": (BOOL, []), "s": (FLOAT, [3])},
        {"c2": BOOL, "t": FLOAT},
    )
    node = single("Loop", "n", "", "x", outputs=["y"], body=body)
    given = {"n": (INT64, []), "flag": (BOOL, []), "x": (FLOAT, [3])}
    model = model_of(graph([node], given, {"y": FLOAT}), 16)
    for flag, right in ((True, X * 4), (False, X**4)):
        check(model, {"n": np.array(3), "flag": np.array(flag), "x": X}, [right])


def test_a_branch_finds_as_many_elements_as_the_graph_around_it_does_not() -> None:
    """Both count elements in a run; the branch reads those of the graph after its own."""
    text = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[5] x, float[4] w, bool c) => (int64[K] y) {
    a = NonZero (x)
    y = If (c) <
        then_branch = t () => (int64[P] r) {
            b = NonZero (w)
            most = ReduceMax <keepdims = 0> (a)
            sum = Add (b, most)
            both = Concat <axis = 1> (sum, a)
            first = Constant <value_ints = [0]> ()
            r = Squeeze (both, first)
        },
        else_branch = e () => (int64[Q] s) {
            zero = Constant <value_ints = [0]> ()
            s = Squeeze (a, zero)
        }>
}"""
    model = onnx.parser.parse_model(text)
    x, w = np.array([1, 0, 1, 1, 0], np.float32), np.array([0, 0, 1, 0], np.float32)
    for flag in (True, False):
        check(model, {"x": x, "w": w, "c": np.array(flag)})


def ill_formed_if(output: str) -> Any:
    then = graph([], {}, {"x": FLOAT})
    return single("If", "c", then_branch=then, else_branch=graph([], {}, {output: FLOAT}))


def ill_formed_loop(result: str) -> Any:
    body = graph([], {"i": (INT64, []), "g": (BOOL, []), "s": (FLOAT, [3])}, {"g": 1, result: 1})
    return single("Loop", "i0", "", "x", body=body)


def ill_formed_scan(**attributes: Any) -> Any:
    body = graph([], {"e": (FLOAT, [])}, {"e": FLOAT})
    return single("Scan", "x", body=body, **{"num_scan_inputs": 1, **attributes})


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (ill_formed_if("i0"), "its branches return the element types .float32. and .int64."),
        (single("If", "c", then_branch=graph([], {}, {})), "its attribute else_branch is missing"),
        (ill_formed_loop("i"), "its body takes .float32. and returns .int64. to carry"),
        (ill_formed_loop("q"), "its body takes a f32.3. and returns a seq.f32. to carry"),
        (ill_formed_scan(num_scan_inputs=2), "num_scan_inputs is 2, but 1 inputs can be scanned"),
        (ill_formed_scan(num_scan_inputs=0), "num_scan_inputs is 0, but 1 inputs"),
        (ill_formed_scan(scan_input_axes=[0, 0]), "scan_input_axes has 2 elements for 1 values"),
        (ill_formed_scan(scan_input_axes=[1]), "its axis 1 is out of range for 1 dimensions"),
        (ill_formed_scan(scan_output_axes=[3]), "scan cannot put e: f32.. along axis 3"),
        (
            single("Scan", "q", body=graph([], {}, {}), num_scan_inputs=1),
            "its input 0 is q: seq.f32., a seq",
        ),
    ],
)
def test_what_is_ill_formed(node: Any, message: str) -> None:
    nodes = [single("SequenceConstruct", "x", outputs=["q"]), node]
    model = make_model(nodes, {"x": (3,)}, ["y"], {"i0": np.array(1)}, opset=16)
    model.graph.input.append(helper.make_tensor_value_info("c", BOOL, []))
    with pytest.raises(UserError, match=message) as caught:
        from_onnx(model.SerializeToString())
    assert caught.value.where in (f"node '{node.op_type}' ({node.op_type})", "node 'y'")
