"""Operators on signals: Fourier transforms, windows, and weights of mel filters."""

from __future__ import annotations

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import element_type
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

_MAX_LENGTH = 1 << 24  # of a transform that is longer than its signal
_MAX_BINS = 1 << 14  # mel filters, whose edges are a table of constants


@converter("DFT")
def dft_by_attribute(node: OnnxNode) -> Value:
    """Convert DFT-17, whose axis is an attribute."""
    return _transformed(node, node.attributes["axis"])


@converter("DFT", since=20)
def dft(node: OnnxNode) -> Value:
    """Convert DFT, whose axis is an input."""
    axis = node.input(2)
    return _transformed(node, -2 if axis is None else node.integer(axis, "axis"))


def _transformed(node: OnnxNode, axis: int) -> Value:
    data = node.required(0)
    rank = len(data.shape)
    place = node.axis(axis, rank)
    parts = node.extent(data, -1)
    if place == rank - 1 or parts not in (1, 2):
        raise UserError(
            f"it cannot transform axis {axis} of {data}",
            why="the last axis holds the real and the imaginary part",
            remedy="give a signal whose last extent is 1 or 2, and another axis",
        )
    length = node.input(1)
    count = None if length is None else node.integer(length, "dft_length")
    if count is not None and count > _MAX_LENGTH:
        raise UserError(
            f"its dft_length is {count}", remedy=f"use at most {_MAX_LENGTH} elements"
        )
    inverse = bool(node.attributes["inverse"])
    onesided = bool(node.attributes["onesided"])
    node.extent(data, place)  # a run must know it
    options = {"axis": place} if count is None else {"axis": place, "length": count}
    if not onesided:
        return node.make("ifft" if inverse else "fft", [_complex(node)], **options)
    if inverse == (parts == 1):
        raise UserError(
            f"one side of {'an inverse' if inverse else 'a'} transform of {data} is asked for",
            why="a forward one takes real signals, an inverse one complex spectra",
            remedy="set onesided to 0",
        )
    if inverse:
        signal = node.make("irfft", [data], **options)
        return node.make("expand_dims", [signal], axis=rank - 1)
    real = node.make("squeeze", [data], axis=rank - 1)
    return node.make("rfft", [real], **options)


def _complex(node: OnnxNode) -> Value:
    """Return the signal with a real and an imaginary part."""
    data = node.required(0)
    if node.extent(data, -1) == 2:
        return data
    zeros = (0,) * (len(data.shape) - 1)
    return node.make("pad", [data], pad_before=(*zeros, 0), pad_after=(*zeros, 1))


@converter("STFT")
def stft(node: OnnxNode) -> Value:
    """Convert STFT of any version."""
    signal = node.required(0)
    if len(signal.shape) == 2:
        signal = node.make("expand_dims", [signal], axis=2)
    if len(signal.shape) != 3:
        raise UserError(
            f"its signal is {signal}",
            remedy="give a tensor of the shape [batch, length, 1 or 2]",
        )
    size = node.extent(signal, 1)
    parts = node.extent(signal, 2)
    window = node.input(2)
    length = node.input(3)
    if length is not None:
        count = node.integer(length, "frame_length")
    elif window is not None and len(window.shape) == 1:
        count = node.extent(window, 0)
    else:
        count = size
    return node.make(
        "stft",
        [signal, window],
        frame_step=node.integer(node.required(1), "frame_step"),
        frame_length=count,
        # A complex signal has no conjugate half: ONNX says that one side is not possible.
        onesided=bool(node.attributes["onesided"]) and parts == 1,
    )


@converter("HannWindow")
def hann_window(node: OnnxNode) -> Value:
    """Convert HannWindow of any version."""
    return _window(node, "hann_window")


@converter("HammingWindow")
def hamming_window(node: OnnxNode) -> Value:
    """Convert HammingWindow of any version."""
    return _window(node, "hamming_window")


@converter("BlackmanWindow")
def blackman_window(node: OnnxNode) -> Value:
    """Convert BlackmanWindow of any version."""
    return _window(node, "blackman_window")


def _window(node: OnnxNode, operator: str) -> Value:
    dtype = _output_dtype(node)
    window = node.make(
        operator,
        [],
        size=node.integer(node.required(0), "size"),
        periodic=bool(node.attributes["periodic"]),
        dtype=_computed(dtype),
    )
    return node.cast(window, dtype)


@converter("MelWeightMatrix")
def mel_weight_matrix(node: OnnxNode) -> Value:
    """Convert MelWeightMatrix of any version.

    ONNX divides the range of mels into `num_mel_bins + 2` steps, one more than lie between the
    edges of the filters. So the last edge is one step below `upper_edge_hertz`.
    """
    dtype = _output_dtype(node)
    names = ("num_mel_bins", "dft_length", "sample_rate")
    counts = {
        name: node.integer(node.required(k), name) for k, name in enumerate(names)
    }
    edges = ("lower_edge_hertz", "upper_edge_hertz")
    hertz = {
        name: node.number(node.required(k), name)
        for k, name in enumerate(edges, start=3)
    }
    if counts["num_mel_bins"] > _MAX_BINS:
        raise UserError(
            f"it has {counts['num_mel_bins']} filters",
            remedy=f"use at most {_MAX_BINS}",
        )
    steps = counts["num_mel_bins"] + 2
    low, high = (1 + hertz[name] / 700 for name in edges)
    if low > 0 and high > 0 and steps > 0:
        # Mels are a logarithm: to move down by one step of these is to divide by a power.
        hertz["upper_edge_hertz"] = 700 * (high * (low / high) ** (1 / steps) - 1)
    weights = node.make(
        "mel_weight_matrix", [], **counts, **hertz, dtype=_computed(dtype)
    )
    return node.cast(weights, dtype)


def _output_dtype(node: OnnxNode) -> DType:
    code = node.attributes["output_datatype"]
    return element_type(code, "the attribute output_datatype").storage


def _computed(dtype: DType) -> str:
    """Return the dtype to compute in: integers are cut off from f32."""
    return str(dtype) if dtype.is_float else "float32"
