import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import RUNTIME, NodeCase, check, versions

X = np.array([[1.5, -2, 0], [3, -0.5, 4]], np.float32)
Y = np.array([[0, 1, 2], [3, 3, 3]], np.float32)
Z = np.array([2, -1, 9], np.float32)
MEANINGS = {
    "Max": lambda *v: np.maximum.reduce(np.broadcast_arrays(*v)),
    "Mean": lambda *v: sum(v) / np.float32(len(v)),
    "Min": lambda *v: np.minimum.reduce(np.broadcast_arrays(*v)),
    "Sum": lambda *v: sum(v[1:], v[0]),
}


def variadic():
    for name, meaning in MEANINGS.items():
        for version in versions(name):
            old = {"consumed_inputs": [0, 0]} if version < 6 else {}
            yield NodeCase(name, version, [X, Y], old, [meaning(X, Y)])
            yield NodeCase(name, version, [X], old and {"consumed_inputs": [0]}, [X], label="one")
            if version >= 8:
                given = [X, Z, Y]
                yield NodeCase(name, version, given, {}, [meaning(*given)], label="broadcast")
    for kind in ("int8", "uint16", "int64", "float16", "float64"):
        pair = [np.abs(X).astype(kind), Z.clip(0).astype(kind)]
        for name in ("Max", "Min"):
            for version in (12, 13):
                right = [MEANINGS[name](*pair)]
                yield NodeCase(name, version, pair, {}, right, label=kind)
    pair = [X.astype(ml_dtypes.bfloat16), Z.astype(ml_dtypes.bfloat16)]
    for name in ("Max", "Min", "Sum"):
        yield NodeCase(name, 13, pair, {}, [MEANINGS[name](*pair)], label="bf16")


def clip():
    for version in (1, 6):
        old = {"consumed_inputs": [0]} if version == 1 else {}
        bounds = {"min": -1.0, "max": 2.0}
        yield NodeCase("Clip", version, [X], {**bounds, **old}, [X.clip(-1, 2)])
        yield NodeCase("Clip", version, [X], {"min": 1.0, **old}, [X.clip(1)], label="min")
        yield NodeCase("Clip", version, [X], old, [X], label="no bound")
    low, high = np.array(-1, np.float32), np.array(2, np.float32)
    for version in (11, 12, 13):
        for stored in ((), (1, 2), (1,)):
            right = [X.clip(-1, 2)]
            yield NodeCase(
                "Clip", version, [X, low, high], {}, right, constants=stored, label=f"{stored}"
            )
        yield NodeCase("Clip", version, [X, None, high], {}, [X.clip(None, 2)], label="max")
        yield NodeCase("Clip", version, [X, low], {}, [X.clip(-1)], label="min")
        yield NodeCase("Clip", version, [X], {}, [X], label="no bound")
    for kind in ("int8", "uint8", "int64", "float16", "float64"):
        data = np.array([1, 5, 9], kind)
        bounds = [np.array(3, kind), np.array(7, kind)]
        for version in (12, 13):
            right = [np.array([3, 5, 7], kind)]
            yield NodeCase("Clip", version, [data, *bounds], {}, right, label=kind)
    crossed = [X, high, low]
    yield NodeCase("Clip", 13, crossed, {}, [np.full_like(X, -1)], label="crossed")
    vector = [X, low.reshape(1), high.reshape(1)]
    yield NodeCase("Clip", 13, vector, {}, [X.clip(-1, 2)], label="bounds of shape [1]")
    nan = np.array(np.nan, np.float32)
    right = [np.full_like(X, np.nan)]
    other = {RUNTIME: "it ignores a bound that is NaN, which the text leaves open"}
    yield NodeCase("Clip", 13, [X, nan], {}, right, constants=[1], label="NaN", wrong=other)


CASES = [*variadic(), *clip()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("Max", 6, [X, Z]), "differ in shape"),
        (NodeCase("Sum", 13, []), "it has no input"),
        (NodeCase("Clip", 13, [X, Z]), "is not a scalar"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
