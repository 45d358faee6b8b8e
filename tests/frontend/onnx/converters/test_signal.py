"""Fourier transforms, windows and mel filters: every version, the choices of each, and refusals."""

import numpy as np
import onnx
import pytest

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check
from tests.strategies.operands import floats

REAL = floats(0, 2, 12, 3, 1)
COMPLEX = floats(1, 2, 12, 3, 2)
HALF = floats(2, 2, 5, 3, 2)
STRIPES = floats(3, 2, 20, 1)
WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")
MEL = [np.array(8), np.array(64), np.array(8000), np.float32(100), np.float32(3500)]


def transform(version, label, data=REAL, length=None, axis=1, **attributes):
    """A case of DFT, which is also right by numpy."""
    inputs = [data, None if length is None else np.array(length)]
    if version < 20:
        attributes["axis"] = axis
    else:
        inputs.append(np.array(axis))
    constants = [k for k in (1, 2) if k < len(inputs) and inputs[k] is not None]
    numbers = data[..., 0] if data.shape[-1] == 1 else data[..., 0] + 1j * data[..., 1]
    inverse, onesided = attributes.get("inverse", 0), attributes.get("onesided", 0)
    function = [[np.fft.fft, np.fft.rfft], [np.fft.ifft, np.fft.irfft]][inverse][onesided]
    made = function(numbers, length, axis + 1 if axis < 0 else axis)
    parts = [made] if inverse and onesided else [made.real, made.imag]
    return NodeCase(
        "DFT",
        version,
        inputs,
        attributes,
        expected=[np.stack(parts, axis=-1).astype(data.dtype)],
        constants=constants,
        label=label,
        atol=1e-4,
    )


CASES = [
    *(transform(v, "real") for v in (17, 20)),
    *(transform(v, "one_side", onesided=1) for v in (17, 20)),
    *(transform(v, "complex", COMPLEX, length=8) for v in (17, 20)),
    *(transform(v, "longer", COMPLEX, length=15) for v in (17, 20)),
    *(transform(v, "inverse", COMPLEX, inverse=1) for v in (17, 20)),
    *(transform(v, "inverse_one_side", HALF, inverse=1, onesided=1) for v in (17, 20)),
    transform(20, "last_axis", COMPLEX, axis=-2),
    transform(20, "f64", REAL.astype(np.float64)),
    transform(20, "inverse_of_real", REAL, inverse=1),
    NodeCase("STFT", 17, [STRIPES, np.array(3), None, np.array(8)], constants=[1, 3], atol=1e-4),
    NodeCase(
        "STFT",
        17,
        [STRIPES, np.array(4), np.hanning(8).astype(np.float32)],
        {"onesided": 0},
        constants=[1],
        atol=1e-4,
        label="window",
    ),
    *(
        NodeCase(
            name,
            17,
            [np.array(9, kind)],
            {"periodic": periodic},
            constants=[0],
            label=str(periodic),
        )
        for name in WINDOWS
        for kind, periodic in ((np.int64, 1), (np.int32, 0))
    ),
    *(
        NodeCase(
            name,
            17,
            [np.array(9)],
            {"output_datatype": onnx.TensorProto.DOUBLE},
            constants=[0],
            label="f64",
        )
        for name in WINDOWS
    ),
    NodeCase("MelWeightMatrix", 17, MEL, constants=range(5)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_lengths_that_only_a_run_knows():
    for case in CASES:
        if case.label in ("longer", "1", "window") or case.operator == "MelWeightMatrix":
            check(NodeCase(case.operator, case.version, case.inputs, case.attributes, atol=1e-4))


def test_frames_are_as_long_as_the_signal_by_default():
    case = NodeCase("STFT", 17, [STRIPES, np.array(1)], constants=[1])
    (made,) = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())
    right = np.fft.rfft(STRIPES[:, None, :, 0])
    np.testing.assert_allclose(made[..., 0] + 1j * made[..., 1], right, rtol=1e-3, atol=1e-4)


def test_a_complex_signal_has_two_sides():
    case = NodeCase("STFT", 17, [COMPLEX[:, :, 0], np.array(12)], constants=[1])
    (made,) = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())
    right = np.fft.fft(COMPLEX[:, None, :, 0, 0] + 1j * COMPLEX[:, None, :, 0, 1])
    np.testing.assert_allclose(made[..., 0] + 1j * made[..., 1], right, rtol=1e-3, atol=1e-4)


def test_a_window_of_integers_is_cut_off():
    kind = {"output_datatype": onnx.TensorProto.INT32}
    case = NodeCase("HannWindow", 17, [np.array(4)], kind, constants=[0])
    (made,) = onnx_backend.prepare(case.model(), "INTERP").run({})
    assert made.tolist() == [0, 0, 1, 0] and made.dtype == np.int32


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("DFT", 20, [REAL, None, np.array(3)], constants=[2]), "cannot transform axis 3"),
        (
            NodeCase("DFT", 17, [REAL, np.array(2**31 - 1)], constants=[1]),
            "its dft_length is 2147483647",
        ),
        (NodeCase("DFT", 17, [STRIPES[..., 0]]), "cannot transform axis 1"),
        (
            NodeCase("DFT", 17, [COMPLEX], {"onesided": 1}),
            "one side of a transform .* is asked for",
        ),
        (
            NodeCase("DFT", 17, [REAL], {"onesided": 1, "inverse": 1}),
            "one side of an inverse transform .* is asked for",
        ),
        (
            NodeCase("DFT", 17, [REAL, np.array(0)], constants=[1]),
            "cannot transform 0 elements",
        ),
        (
            NodeCase("MelWeightMatrix", 17, [np.array(2**40), *MEL[1:]], constants=range(5)),
            "it has 1099511627776 filters",
        ),
        (NodeCase("STFT", 17, [REAL, np.array(1)], constants=[1]), "its signal is x0"),
        (NodeCase("HannWindow", 17, [np.array(-1)], constants=[0]), "cannot have -1 elements"),
        (
            NodeCase("HannWindow", 17, [np.array(3)], {"output_datatype": 14}, constants=[0]),
            "has the element type complex64",
        ),
        (
            NodeCase("MelWeightMatrix", 17, [*MEL[:3], MEL[4], MEL[3]], constants=range(5)),
            "cannot have edges at 3500",
        ),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
