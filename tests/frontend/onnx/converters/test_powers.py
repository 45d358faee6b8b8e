import ml_dtypes
import numpy as np
import pytest

from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import RUNTIME, NodeCase, check, versions

X = np.array([[1, 2, 3], [4, 0.5, 9]], np.float32)
Y = np.array([2, -1, 0.5], np.float32)
WHOLE = np.array([3, -2, 2, 0, 1, -1, 7], np.int64)
EXPONENTS = np.array([4, 63, 64, 0, 200, 101, 2], np.int64)
POWERS = np.array([81, -(2**63), 0, 1, 1, -1, 49], np.int64)
BF16 = ml_dtypes.bfloat16
IN_FLOATS = {RUNTIME: "it computes powers of integers as floats, which overflow"}


def mixed():
    bases = (np.float32, np.float64, np.float16, np.int32, np.int64)
    exponents = (np.float32, np.float64, np.int32, np.int64)
    for version in (12, 13, 15):
        for base in bases:
            for exponent in exponents:
                x = np.array([1, 2, 3, 4]).astype(base)
                y = np.array([0, 3, 2, 1]).astype(exponent)
                right = [np.array([1, 8, 9, 4]).astype(base)]
                label = f"{base.__name__} {exponent.__name__}"
                yield NodeCase("Pow", version, [x, y], {}, right, label=label)
    small = np.array([3, 2, 5], np.int8)
    whole = np.array([2, -3, 4], np.int32)
    right = [np.array([8, 9, 1024], np.int32)]
    yield NodeCase("Pow", 12, [whole, small], {}, right, label="exponent of i8")
    unsigned = [whole, small.astype(np.uint8)]
    yield NodeCase("Pow", 12, unsigned, {}, right, label="exponent of u8")


def negative():
    x = np.array([2, 1, -1, -1, 0], np.int32)
    y = np.array([-1, -3, -3, -2, -1], np.int32)
    right = np.array([0, 1, -1, 1, 0], np.int32)
    other = {RUNTIME: "the text does not say what 0 to the power -1 is"}
    yield NodeCase("Pow", 15, [x, y], {}, [right], label="negative exponents", wrong=other)


CASES = [
    NodeCase("Pow", 1, [X, Y], {"broadcast": 1}, [X**Y]),
    *(NodeCase("Pow", version, [X, Y], {}, [X**Y]) for version in versions("Pow", 7)),
    *mixed(),
    *negative(),
    NodeCase("Pow", 15, [WHOLE, EXPONENTS], {}, [POWERS], label="wraps", wrong=IN_FLOATS),
    NodeCase(
        "Pow",
        15,
        [WHOLE, np.array(3, np.int64)],
        {},
        [WHOLE**3],
        constants=[1],
        label="stored exponent",
    ),
    NodeCase("Pow", 13, [X.astype(BF16), Y], {}, [(X**Y).astype(BF16)], label="bf16", rtol=1e-2),
    NodeCase("Pow", 13, [X, np.array(2.0)], {}, [X * X], constants=[1], label="square"),
    NodeCase("Pow", 13, [X, np.full((1, 1, 1), 2.0)], {}, [X[None] ** 2], constants=[1]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def operators(case: NodeCase) -> list[str]:
    graph = from_onnx(case.model().SerializeToString())
    return [node.operator for node in graph.nodes]


def test_a_stored_exponent_is_used():
    two = np.array(2, np.int64)
    assert operators(NodeCase("Pow", 13, [X, two], constants=[1])) == ["square"]
    half = np.array(0.5)
    assert operators(NodeCase("Pow", 13, [X, half], constants=[1])) == ["power"]
    exact = np.array(1 / 3)
    wide = operators(NodeCase("Pow", 13, [X, exact], constants=[1]))
    assert wide == ["cast", "power", "cast"]
