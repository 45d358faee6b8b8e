"""The convolutions of ResNet-50 (batch 1) beside the core's peak, one thread, all of it warm.

16 channels to a block, zeros around the image in its buffer, bias and ReLU fused, multiply-adds
fused by licence; the stem reads its 3 channels as one block. One schedule, topi's default.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import refcomp
from benchmarks.fma_peak import PEAK_GFLOP, bind_peak
from benchmarks.fresh import call_fresh
from benchmarks.measure import interleave
from benchmarks.report import Bar, Row, Work, row_beside
from refcomp.te.tensor import Tensor
from refcomp.topi.convolution.conv2d_nchwc import conv2d_nchwc, conv2d_nchwc_numpy
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.llvm import schedule_llvm

_BLOCK = 16
_BAR = Bar(1 / 0.90, of="ratio")


@dataclass(frozen=True, slots=True)
class _Layer:
    """A convolution from `channels` to `filters` with square windows and outputs."""

    channels: int
    filters: int
    size: int  # of the output
    kernel: int
    stride: int = 1

    @property
    def title(self) -> str:
        stride = f"/{self.stride}" if self.stride > 1 else ""
        size = f"{self.kernel}x{self.kernel}{stride}"
        return f"{size}, {self.channels} to {self.filters} at {self.size}"

    @property
    def gflop(self) -> float:
        return 2e-9 * self.channels * self.filters * (self.size * self.kernel) ** 2


_LAYERS = (
    _Layer(3, 64, 112, 7, 2),
    *(_Layer(c, c, s, 3) for c, s in ((64, 56), (128, 28), (256, 14), (512, 7))),
    *(_Layer(c, f, s, 1) for c, f, s in ((64, 256, 56), (256, 64, 56), (512, 2048, 7))),
    _Layer(2048, 512, 7, 1),
)


def measure(is_quick: bool) -> list[Row]:
    """Return a row for each kind of layer."""
    rows = []
    for number, layer in enumerate(_LAYERS):
        times = call_fresh(time_layer, threads=1, number=number, is_quick=is_quick)
        at_peak = [seconds * layer.gflop / PEAK_GFLOP for seconds in times["peak"]]
        work = Work(layer.gflop, "Gflop")
        ours = times["refcomp"]
        rows.append(
            row_beside("convolution", layer.title, ours, "peak", at_peak, work=work, bar=_BAR)
        )
    return rows


def time_layer(number: int, is_quick: bool) -> dict[str, list[float]]:
    """Return the seconds per call of a layer, and of the kernel at the peak.

    The result of the layer is checked first.
    """
    layer = _LAYERS[number]
    random = np.random.default_rng(0)  # small integers, of which all sums are exact
    tensors = _tensors(layer)
    x, w, bias, y = (
        random.integers(-3, 4, tuple(dim.value for dim in tensor.shape)).astype(np.float32)
        for tensor in tensors
    )
    with refcomp.build_options(contract=True):
        module = refcomp.build(schedule_llvm(tensors[-1:]), tensors, "llvm", name="convolution")
    call = module.entry.bind(x, w, bias, y)
    call()
    expected = conv2d_nchwc_numpy(x, w, bias, strides=(layer.stride,) * 2)
    np.testing.assert_array_equal(y, np.maximum(expected, 0))
    return interleave(
        {"refcomp": call, "peak": bind_peak()},
        rounds=3 if is_quick else 15,
        least_s=0.02 if is_quick else 0.1,
    )


def _tensors(layer: _Layer) -> list[Tensor]:
    """Data with its halo, weights, bias and result."""
    block = min(layer.channels, _BLOCK)
    reach = (layer.size - 1) * layer.stride + layer.kernel
    blocks, outs = layer.channels // block, layer.filters // _BLOCK
    kernel = (layer.kernel, layer.kernel)
    x = refcomp.placeholder((1, blocks, reach, reach, block), name="x")
    w = refcomp.placeholder((outs, blocks, *kernel, block, _BLOCK), name="w")
    bias = refcomp.placeholder((outs, _BLOCK), name="bias")
    y = relu(conv2d_nchwc(x, w, bias, strides=(layer.stride,) * 2))
    return [x, w, bias, y]
