"""Operators of networks with classic arguments are those of refcomp with their keywords."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic import topi
from refcomp.foundation.errors import UserError
from refcomp.oracle import evaluate

rng = np.random.default_rng(4)
SHAPES = {
    "X": (1, 4, 6, 7),
    "Y": (1, 6, 7, 4),
    "W": (2, 4, 3, 3),
    "G": (2, 2, 3, 3),
    "H": (3, 3, 4, 2),
    "T": (4, 2, 3, 2),
    "D": (4, 1, 3, 3),
    "P": (6, 7, 4, 1),
    "S": (1, 1, 4, 2),
    "B": (32, 64),
    "c": (4,),
    "d": (4,),
    "Q": (3, 5),
    "R": (2, 5),
    "e": (2,),
}
T = {name: rc.placeholder(shape, name=name) for name, shape in SHAPES.items()}
VALUES = {T[n]: rng.standard_normal(shape).astype("float32") for n, shape in SHAPES.items()}
for name, extents in {"U": (3, 32), "V": (2, 32)}.items():
    T[name] = rc.placeholder(extents, "uint8", name=name)
    VALUES[T[name]] = rng.integers(0, 2, extents, "uint8")
X, Y = T["X"], T["Y"]
x, y = VALUES[X], VALUES[Y]
channels = topi.expand_dims(T["c"], 1, 2)

CASES = {
    "conv2d": (
        topi.nn.conv2d(X, T["W"], 1, 1),
        rc.topi.conv2d(X, T["W"], padding=(1, 1, 1, 1)),
    ),
    "conv2d, pairs": (
        topi.nn.conv2d(X, T["W"], strides=(2, 1), padding=(0, 1), dilation=(2, 1)),
        rc.topi.conv2d(X, T["W"], strides=(2, 1), padding=(0, 1, 0, 1), dilation=(2, 1)),
    ),
    "conv2d, SAME": (
        topi.nn.conv2d_nchw(X, T["W"], 1, "SAME", 2),
        rc.topi.conv2d(X, T["W"], padding=(2, 2, 2, 2), dilation=(2, 2)),
    ),
    "conv2d, NHWC": (
        topi.nn.conv2d(Y, T["H"], 1, "SAME", layout="NHWC"),
        rc.topi.conv2d_nhwc(Y, T["H"], padding=(1, 1, 1, 1)),
    ),
    "conv2d, HWCN": (
        topi.nn.conv2d(T["P"], T["H"], 2, 0, 1, "HWCN"),
        rc.topi.conv2d_hwcn(T["P"], T["H"], strides=(2, 2)),
    ),
    "conv2d, the order of TVM 0.4": (
        topi.nn.conv2d(T["P"], T["H"], 1, 0, "HWCN", "float32"),
        rc.topi.conv2d_hwcn(T["P"], T["H"]),
    ),
    "depthwise": (
        topi.nn.depthwise_conv2d_nchw(X, T["D"], 1, 1, 1),
        rc.topi.depthwise_conv2d_nchw(X, T["D"], padding=(1, 1, 1, 1)),
    ),
    "depthwise, NHWC": (
        topi.nn.depthwise_conv2d_nhwc(Y, T["H"], (2, 2), "VALID", (1, 1)),
        rc.topi.depthwise_conv2d_nhwc(Y, T["H"], strides=(2, 2)),
    ),
    "groups": (
        topi.nn.group_conv2d_nchw(X, T["G"], 1, 0, 1, 2),
        rc.topi.group_conv2d_nchw(X, T["G"], groups=2),
    ),
    "transposed": (
        topi.nn.conv2d_transpose_nchw(X, T["T"], 2, "SAME"),
        rc.topi.conv2d_transpose(X, T["T"], strides=(2, 2), padding=(1, 1, 1, 0)),
    ),
    "pool": (
        topi.nn.pool(X, [3, 2], 2, [1, 0, 1, 1], "max", True),
        rc.topi.max_pool2d(X, kernel=(3, 2), strides=(2, 2), padding=(1, 0, 1, 1), ceil_mode=True),
    ),
    "pool, means": (
        topi.nn.pool(X, 3, 1, [1, 1, 1, 1], "avg"),
        rc.topi.avg_pool2d(X, kernel=(3, 3), padding=(1, 1, 1, 1), count_include_pad=True),
    ),
    "pool, means without padding": (
        topi.nn.pool(Y, 3, 1, 1, "avg", layout="NHWC", count_include_pad=False),
        rc.topi.avg_pool2d(Y, kernel=(3, 3), padding=(1, 1, 1, 1), layout="NHWC"),
    ),
    "global_pool": (topi.nn.global_pool(X, "max"), rc.topi.global_max_pool2d(X)),
    "global_pool, means": (
        topi.nn.global_pool(Y, "avg", "NHWC"),
        rc.topi.global_avg_pool2d(Y, layout="NHWC"),
    ),
    "adaptive_pool": (
        topi.nn.adaptive_pool(X, (2, 3), "avg"),
        rc.topi.adaptive_avg_pool2d(X, output_size=(2, 3)),
    ),
    "adaptive_pool, maxima": (
        topi.nn.adaptive_pool(X, 2, "max"),
        rc.topi.adaptive_max_pool2d(X, output_size=(2, 2)),
    ),
    "upsampling": (
        topi.nn.upsampling(X, 2, layout="NCHW", method="NEAREST_NEIGHBOR"),
        rc.topi.upsampling(X, scale_h=2, scale_w=2),
    ),
    "upsampling, the order of TVM 0.5": (
        topi.nn.upsampling(Y, 2, "NHWC", "BILINEAR"),
        rc.topi.upsampling(Y, scale_h=2, scale_w=2, layout="NHWC", method="bilinear"),
    ),
    "upsampling, a scale and its layout": (
        topi.nn.upsampling(X, 2, "NCHW"),
        rc.topi.upsampling(X, scale_h=2, scale_w=2),
    ),
    "bias_add": (topi.nn.bias_add(X, T["c"]), rc.topi.add(X, channels)),
    "bias_add, last": (topi.nn.bias_add(Y, T["c"], 3), rc.topi.add(Y, T["c"])),
    "bitserial_dense": (
        topi.nn.bitserial_dense(T["U"], T["V"], 2, 1),
        rc.topi.bitserial_dense(T["U"], T["V"], data_bits=2, weight_bits=1, out_dtype="int16"),
    ),
    "pad, a name": (
        topi.nn.pad(X, [0, 0, 1, 1], name="padded"),
        rc.topi.pad(X, pad_before=(0, 0, 1, 1)),
    ),
    "mirror_pad, a name": (
        topi.nn.mirror_pad(X, (0, 0, 1, 2), name="mirrored"),
        rc.topi.mirror_pad(X, pad_before=(0, 0, 1, 2), mode="symmetric"),
    ),
    "binarize_pack, a name": (
        topi.nn.binarize_pack(T["B"], name="packed"),
        rc.topi.binarize_pack(T["B"], axis=-1),
    ),
    "upsampling, bilinear": (
        topi.nn.upsampling(X, 2, 3, "NCHW", "bilinear", True),
        rc.topi.upsampling(X, scale_h=2, scale_w=3, method="bilinear", align_corners=True),
    ),
    "softmax": (topi.nn.softmax(X, 1), rc.topi.softmax(X, axis=1)),
    "dense": (topi.nn.dense(T["Q"], T["R"]), rc.topi.dense(T["Q"], T["R"])),
    "dense, bias": (
        topi.nn.dense(T["Q"], T["R"], T["e"], "float32"),
        rc.topi.dense(T["Q"], T["R"], T["e"]),
    ),
    "leaky_relu": (topi.nn.leaky_relu(X, 0.25), rc.topi.leaky_relu(X, alpha=0.25)),
    "prelu": (topi.nn.prelu(X, T["c"]), rc.topi.prelu(X, channels)),
    "prelu, last": (topi.nn.prelu(Y, T["c"], 3), rc.topi.prelu(Y, T["c"])),
    "pad": (
        topi.nn.pad(X, [0, 0, 1, 2], pad_value=1.0),
        rc.topi.pad(X, pad_before=(0, 0, 1, 2), pad_value=1.0),
    ),
    "mirror_pad": (
        topi.nn.mirror_pad(X, (0, 0, 1, 2), (0, 0, 2, 1), "REFLECT"),
        rc.topi.mirror_pad(X, pad_before=(0, 0, 1, 2), pad_after=(0, 0, 2, 1), mode="reflect"),
    ),
    "space_to_depth": (
        topi.nn.space_to_depth(T["S"], 2),
        rc.topi.space_to_depth(T["S"], block_size=2),
    ),
    "depth_to_space": (
        topi.nn.depth_to_space(X, 2, mode="CRD"),
        rc.topi.depth_to_space(X, block_size=2, mode="CRD"),
    ),
    "binarize_pack": (topi.nn.binarize_pack(T["B"]), rc.topi.binarize_pack(T["B"], axis=-1)),
    "binarize_pack, first": (
        topi.nn.binarize_pack(T["B"], 0),
        rc.topi.binarize_pack(T["B"], axis=0),
    ),
    "lrn": (
        topi.nn.lrn(X, 3, 1, 0.1, 0.5, 2),
        rc.topi.lrn(X, size=3, axis=1, alpha=0.1, beta=0.5, bias=2.0),
    ),
    "l2_normalize": (
        topi.nn.l2_normalize(X, 0.001, [1]),
        rc.topi.l2_normalize(X, axis=[1], epsilon=0.001),
    ),
    "l2_normalize, all": (
        topi.nn.l2_normalize(X, 0.001),
        rc.topi.l2_normalize(X, axis=[0, 1, 2, 3], epsilon=0.001),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_classic_call_is_a_call_with_keywords(case: str) -> None:
    classic, keywords = (evaluate([tensor], VALUES)[0] for tensor in CASES[case])
    assert (classic.shape, classic.dtype) == (keywords.shape, keywords.dtype)
    np.testing.assert_array_equal(classic, keywords)


@pytest.mark.parametrize(
    ("scale_shift", "data", "along"),
    [
        (topi.nn.scale_shift_nchw, X, (slice(None), None, None)),
        (topi.nn.scale_shift_nhwc, Y, (slice(None),)),
    ],
)
def test_scale_shift_is_a_line_for_each_channel(scale_shift, data, along) -> None:
    (result,) = evaluate([scale_shift(data, T["c"], T["d"])], VALUES)
    expected = VALUES[data] * VALUES[T["c"]][along] + VALUES[T["d"]][along]
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_dilate_inserts_zeros_between_neighbours() -> None:
    (result,) = evaluate([topi.nn.dilate(X, (1, 1, 2, 3))], VALUES)
    expected = np.zeros((1, 4, 11, 19), "float32")
    expected[:, :, ::2, ::3] = x
    np.testing.assert_array_equal(result, expected)
    named = topi.nn.dilate(X, [1, 1, 1, 1], name="spread")
    assert named.op.name == "spread"
    (same,) = evaluate([named], VALUES)
    np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize("strides", [(1, 1), (1, 1, 0, 1)])
def test_dilate_refuses_strides_that_do_not_fit(strides) -> None:
    with pytest.raises(UserError, match="dilate cannot use the strides") as info:
        topi.nn.dilate(X, strides)
    assert info.value.remedy == "give 4 numbers >= 1, one for each axis"


def test_unknown_words_are_refused() -> None:
    with pytest.raises(UserError, match="the kind of pooling is 'sum'"):
        topi.nn.pool(X, 2, 2, 0, "sum")
    with pytest.raises(UserError, match="the layout of conv2d is 'NCHW4c'") as info:
        topi.nn.conv2d(X, T["W"], 1, 1, 1, "NCHW4c")
    assert info.value.remedy.endswith("use NCHW or HWCN or NHWC")
