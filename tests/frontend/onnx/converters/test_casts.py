import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES, STRINGS
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check, versions

X = np.array([[1.5, -2, 0], [3, -0.5, 4]], np.float32)
LARGE = np.array([0, 1e-9, -1e9, 1e9, 0.75, 448, np.inf, -np.inf, np.nan], np.float32)


def saturation():
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        kind = np.dtype(getattr(ml_dtypes, name))
        code = helper.np_dtype_to_tensor_dtype(kind)
        limit = np.float32(ml_dtypes.finfo(kind).max)
        for version in versions("Cast", 19):
            clamped = LARGE.clip(-limit, limit).astype(kind)
            label = f"{name}"
            yield NodeCase("Cast", version, [LARGE], {"to": code}, [clamped], label=label)
            given = {"to": code, "saturate": 0}
            yield NodeCase(
                "Cast", version, [LARGE], given, [LARGE.astype(kind)], label=f"{label} 0"
            )
        like = np.zeros(1, kind)
        for version in versions("CastLike", 19):
            yield NodeCase("CastLike", version, [LARGE, like], {}, [clamped], label=name)


def powers_of_two():
    data = np.array([0, 1, 1.1, 1.5, 1.9, 2.0**-130, 3e38, np.inf, np.nan], np.float32)
    codes = {
        ("up", 1): [0, 127, 128, 128, 128, 0, 254, 254, 255],
        ("down", 1): [0, 127, 127, 127, 127, 0, 254, 254, 255],
        ("nearest", 1): [0, 127, 127, 128, 128, 0, 254, 254, 255],
        ("nearest", 0): [255, 127, 127, 128, 128, 255, 255, 255, 255],
    }
    text = "by the table of the text, an infinity saturates; zero without saturation gives NaN"
    for (mode, saturate), wanted in codes.items():
        given = {"to": TensorProto.FLOAT8E8M0, "round_mode": mode, "saturate": saturate}
        right = np.array(wanted, np.uint8).view(ml_dtypes.float8_e8m0fnu)
        for version in versions("Cast", 24):
            label = f"e8m0 {mode} {saturate}"
            yield NodeCase(
                "Cast", version, [data], given, [right], label=label, wrong={EVALUATOR: text}
            )


def integers():
    data = np.array([200, -1, 7, -8, 1000], np.int32)
    kinds = ("int8", "uint8", "int16", "uint64", "bool", "int4", "uint4", "int2", "uint2")
    for name in kinds:
        kind = np.dtype(getattr(ml_dtypes, name, None) or name)
        code = helper.np_dtype_to_tensor_dtype(kind)
        right = [data.astype(kind)]
        yield NodeCase("Cast", 25, [data], {"to": code}, right, label=f"i32 to {name}")


def bits():
    names = [one for one in ELEMENT_TYPES.values() if one.code != STRINGS and "6_" not in one.name]
    by_width = {}
    for one in names:
        width = 4 if "4" in one.name[-2:] or "float4" in one.name else one.numpy.itemsize * 8
        width = 2 if one.name in ("int2", "uint2") else width
        width = one.numpy.itemsize * 8 if one.numpy.itemsize > 1 else width
        by_width.setdefault(width, []).append(one)
    for width, kinds in by_width.items():
        for source in kinds:
            for target in kinds:
                patterns = bit_patterns(width, source.name == "bool" or target.name == "bool")
                data, right = (of_bits(patterns, one, width) for one in (source, target))
                label = f"{source.name} as {target.name}"
                given = {"to": target.code}
                yield NodeCase("BitCast", 26, [data], given, [right], label=label)


def bit_patterns(width: int, is_bool: bool) -> np.ndarray:
    if is_bool:
        return np.array([0, 1, 1], np.uint8)
    if width < 8:
        return np.arange(2**width).astype(np.uint8)
    unsigned = np.dtype(f"uint{width}")
    numbers = [0, 1, 2 ** (width - 1), 2 ** (width - 2) + 5, 77]
    return np.array(numbers, np.uint64).astype(unsigned)


def of_bits(patterns, kind, width):
    """Return the array of an element type that has these bits."""
    if width < 8 and kind.numpy.name.startswith("int"):
        half = 1 << (width - 1)
        return ((patterns.astype(np.int8) ^ half) - half).astype(kind.numpy)
    if width < 8 and kind.numpy.name.startswith("uint"):
        return patterns.astype(kind.numpy)
    return patterns.view(kind.numpy)


CASES = [
    NodeCase("Cast", 1, [X], {"to": "INT32"}, [X.astype(np.int32)]),
    *(
        NodeCase("Cast", v, [X], {"to": TensorProto.INT32}, [X.astype(np.int32)])
        for v in versions("Cast", 6)
    ),
    *(
        NodeCase("CastLike", v, [X, np.array([], np.int64)], {}, [X.astype(np.int64)])
        for v in versions("CastLike")
    ),
    NodeCase("Cast", 13, [X], {"to": TensorProto.FLOAT}, [X], label="same"),
    *saturation(),
    *powers_of_two(),
    *integers(),
    *bits(),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("operator", "version", "to", "message"),
    [
        ("Cast", 1, "INT33", "'INT33', which is not an element type"),
        ("Cast", 13, 14, "its output has the element type complex64"),
        ("Cast", 24, 99, "its output has the element type 99"),
        ("BitCast", 26, TensorProto.DOUBLE, "it cannot view float32 as float64"),
        ("BitCast", 26, TensorProto.STRING, "it cannot view float32 as string"),
    ],
)
def test_types_that_do_not_fit_are_refused(operator, version, to, message):
    model = NodeCase(operator, version, [X], {"to": to}).model()
    with pytest.raises(UserError, match=message):
        from_onnx(model.SerializeToString())


def test_a_mode_of_rounding_that_does_not_exist_is_refused():
    given = {"to": TensorProto.FLOAT8E8M0, "round_mode": "upp"}
    model = NodeCase("Cast", 24, [X], given).model()
    with pytest.raises(UserError, match="cannot round by 'upp'"):
        from_onnx(model.SerializeToString())
