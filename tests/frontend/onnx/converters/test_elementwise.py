import math

import ml_dtypes
import numpy as np
import pytest

from tests.frontend.onnx.converters.cases import NodeCase, check, versions

A = np.array([[1, 5, -3], [4, 2, 2]], np.float32)
B = np.array([1, 4, -5], np.float32)
SMALL = np.array([[0.5, -0.25, 0.9], [0, -0.9, 0.1]], np.float32)
POSITIVE = np.array([1, 1.5, 2, 100], np.float32)
UNARY = {
    "Abs": (np.abs, A),
    "Acos": (np.arccos, SMALL),
    "Acosh": (np.arccosh, POSITIVE),
    "Asin": (np.arcsin, SMALL),
    "Asinh": (np.arcsinh, A),
    "Atan": (np.arctan, A),
    "Atanh": (np.arctanh, SMALL),
    "Ceil": (np.ceil, SMALL * 3),
    "Cos": (np.cos, A),
    "Cosh": (np.cosh, A),
    "Exp": (np.exp, A),
    "Floor": (np.floor, SMALL * 3),
    "Log": (np.log, POSITIVE),
    "Neg": (np.negative, A),
    "Reciprocal": (np.reciprocal, A),
    "Round": (np.rint, np.array([0.5, 1.5, -2.5, 2.7], np.float32)),
    "Sign": (np.sign, SMALL),
    "Sin": (np.sin, A),
    "Sinh": (np.sinh, A),
    "Sqrt": (np.sqrt, POSITIVE),
    "Tan": (np.tan, A),
}
BINARY = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract}
BF16 = ml_dtypes.bfloat16


def unary():
    for name, (meaning, data) in UNARY.items():
        for version in versions(name):
            old = version < 6 and name != "Sign"
            attributes = {"consumed_inputs": [0]} if old else {}
            yield NodeCase(name, version, [data], attributes, [meaning(data)])
    for name in ("Abs", "Neg", "Sign"):
        data = np.array([-3, 0, 7], np.int64)
        right = [UNARY[name][0](data)]
        yield NodeCase(name, 13, [data], {}, right, label="integers")


def binary():
    for name, meaning in BINARY.items():
        for version in versions(name):
            attributes = {"broadcast": 1} if version < 7 else {}
            yield NodeCase(name, version, [A, B], attributes, [meaning(A, B)])
        for version in (13, 14):
            x, y = A.astype(BF16), B.astype(BF16)
            yield NodeCase(name, version, [x, y], {}, [meaning(x, y)], label="bf16", rtol=1e-2)
    integers = [np.array([7, -7, 9], np.int64), np.array([2, 2, -4], np.int64)]
    for version in versions("Div", 7):
        right = [np.array([3, -3, -2])]
        yield NodeCase("Div", version, integers, {}, right, label="integers")
    bytes_ = [np.array([200, 3], np.uint8), np.array([100, 5], np.uint8)]
    yield NodeCase("Add", 14, bytes_, {}, [np.array([44, 8], np.uint8)], label="u8")
    yield NodeCase("Sub", 14, bytes_, {}, [np.array([100, 254], np.uint8)], label="u8")


def erf():
    data = np.array([-1, 0, 0.5], np.float32)
    right = np.array([math.erf(x) for x in data], np.float32)
    for version in versions("Erf"):
        yield NodeCase("Erf", version, [data], {}, [right])


def mod():
    x, y = np.array([-4, 7, 5, 4, -7, 8], np.int32), np.array([2, -3, 8, -2, 3, 5], np.int32)
    for version in versions("Mod"):
        yield NodeCase("Mod", version, [x, y], {}, [np.mod(x, y)])
        yield NodeCase("Mod", version, [x, y], {"fmod": 1}, [np.fmod(x, y)], label="fmod")
        floats = [one.astype(np.float32) * np.float32(1.3) for one in (x, y)]
        right = [np.fmod(*floats)]
        yield NodeCase("Mod", version, floats, {"fmod": 1}, right, label="floats")
    inf, nan = math.inf, math.nan
    x = np.array([3, -3, inf, 0, 3, nan, 3, -3], np.float32)
    y = np.array([inf, inf, 2, -2, 0, 2, -inf, -inf], np.float32)
    floor = np.array([3, inf, nan, -0.0, nan, nan, -inf, -3], np.float32)
    trunc = np.array([3, -3, nan, 0, nan, nan, 3, -3], np.float32)
    yield NodeCase("Mod", 28, [x, y], {"fmod": 0}, [floor], label="special")
    yield NodeCase("Mod", 28, [x, y], {"fmod": 1}, [trunc], label="fmod special")


CASES = [*unary(), *binary(), *erf(), *mod()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)
