import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check, versions

A = np.array([[1, 5, -3], [4, 2, 2]], np.float32)
B = np.array([1, 4, -5], np.float32)
P = np.array([[True, False, True], [False, False, True]])
Q = np.array([True, True, False])
WHOLE, OTHER = np.array([12, -5, 7], np.int32), np.array([10, 3, -1], np.int32)
COMPARISONS = {
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}
LOGIC = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
BITS = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}


def binary():
    for names, pair in ((COMPARISONS, [A, B]), (LOGIC, [P, Q]), (BITS, [WHOLE, OTHER])):
        for name, meaning in names.items():
            for version in versions(name):
                old = {"broadcast": 1} if version < 7 else {}
                yield NodeCase(name, version, pair, old, [meaning(*pair)])
    for name, meaning in COMPARISONS.items():
        pair = [np.array([250, 3], np.uint8), np.array([5, 3], np.uint8)]
        yield NodeCase(name, 16, pair, {}, [meaning(*pair)], label="u8")
    for version in versions("Equal"):
        old = {"broadcast": 1} if version < 7 else {}
        pair = [A.astype(np.int32), B.astype(np.int32)]
        yield NodeCase("Equal", version, pair, old, [A == B])
        yield NodeCase("Equal", version, [P, Q], old, [P == Q], label="bools")
        if version >= 11:
            yield NodeCase("Equal", version, [A, B], {}, [A == B], label="floats")


def shifts():
    x, y = np.array([16, 255, 1, 6], np.uint8), np.array([1, 4, 3, 0], np.uint8)
    signed = np.array([-16, -1, 1, 100, 5, -5], np.int8)
    counts = np.array([1, 4, 7, -1, 8, 9], np.int8)
    for version in versions("BitShift"):
        for direction, meaning in (("LEFT", np.left_shift), ("RIGHT", np.right_shift)):
            given = {"direction": direction}
            yield NodeCase("BitShift", version, [x, y], given, [meaning(x, y)], label=direction)
    left = np.array([-32, -16, -128, 0, 0, 0], np.int8)
    right = np.array([-8, -1, 0, 0, 0, -1], np.int8)
    for direction, wanted in (("LEFT", left), ("RIGHT", right)):
        given = {"direction": direction}
        label = f"signed {direction}"
        yield NodeCase("BitShift", 28, [signed, counts], given, [wanted], label=label)


def predicates():
    data = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    for version in versions("IsNaN"):
        yield NodeCase("IsNaN", version, [data], {}, [np.isnan(data)])
    for version in versions("IsInf"):
        yield NodeCase("IsInf", version, [data], {}, [np.isinf(data)])
        given = {"detect_negative": 0}
        yield NodeCase("IsInf", version, [data], given, [np.isposinf(data)], label="positive")
        given = {"detect_positive": 0}
        yield NodeCase("IsInf", version, [data], given, [np.isneginf(data)], label="negative")
    for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn):
        narrow = data.astype(kind)
        wide = narrow.astype(np.float32)
        for name, meaning in (("IsNaN", np.isnan), ("IsInf", np.isinf)):
            label = np.dtype(kind).name
            yield NodeCase(name, 20, [narrow], {}, [meaning(wide)], label=label)


CASES = [
    *binary(),
    *shifts(),
    *predicates(),
    NodeCase("Not", 1, [P], {}, [~P]),
    NodeCase("BitwiseNot", 18, [WHOLE], {}, [~WHOLE]),
    *(NodeCase("Where", v, [P, A, B], {}, [np.where(P, A, B)]) for v in versions("Where")),
    NodeCase("Where", 16, [Q, P, ~P], {}, [np.where(Q, P, ~P)], label="bools"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_a_direction_that_does_not_exist_is_refused():
    model = NodeCase(
        "BitShift", 11, [WHOLE.astype(np.uint8), OTHER.astype(np.uint8)], {"direction": "UP"}
    ).model()
    with pytest.raises(UserError, match="direction is 'UP'"):
        from_onnx(model.SerializeToString())
