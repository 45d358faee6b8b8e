"""Operators on emulated AMD GPUs, by `topi.schedule_gpu`: counts, not seconds.

First come the convolutions of ResNet-50, whose channels are the last axis. Bias and ReLU are fused,
and multiply-adds are fused by licence. Each layer is a cut-out of its launch: one tile of rows over
the whole width, inside the image, one tile of output channels, and at most 128 input channels. The
tiles are those of the whole layer. Then come the operators of `kernels`, each as a whole.

The peer of a share is the whole: a figure of 0.2 "other vector instructions" means that 80 % of the
vector instructions multiply and add, over the whole kernel. Unused bytes are those of the segments
of global memory that an access of a wave touches, and no lane asked for. All counts are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import refcomp
from benchmarks.gpu_schedules.kernels import KERNELS, QUICK, Kernel
from benchmarks.report import Bar, Row, figure_of
from refcomp.profile.report import ProfileReport, report_of
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import Tensor
from refcomp.topi.convolution.conv2d import conv2d_nhwc, conv2d_nhwc_numpy
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.register_tiles import TiledSum, find_tiles

_NAME = "gpu_schedules"
_GPUS = ("gfx942", "gfx1100")  # waves of 64 lanes, and of 32
_MAX_DEPTH = {1: 512}  # kernel -> input channels of a cut-out, 128 of all others
_OTHERS, _UNUSED, _CONFLICTS = Bar(0.30), Bar(0.10), Bar(0)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A convolution with square windows, or a cut-out of one."""

    channels: int
    filters: int
    height: int  # of the output
    width: int
    kernel: int
    stride: int = 1

    @property
    def title(self) -> str:
        stride = f"/{self.stride}" if self.stride > 1 else ""
        size = f"{self.kernel}x{self.kernel}{stride}"
        return f"{size}, {self.channels} to {self.filters} at {self.width}"

    @property
    def window(self) -> dict[str, object]:
        """Return the attributes of a convolution that lies inside the image from top to bottom."""
        border = self.kernel // 2
        return {"strides": (self.stride,) * 2, "padding": (0, border, 0, border)}

    def convolution(self) -> list[Tensor]:
        """Return data, weights, bias and the convolution, before the ReLU."""
        high = (self.height - 1) * self.stride + self.kernel
        wide = self.width * self.stride
        x = refcomp.placeholder((1, high, wide, self.channels), name="x")
        kernel = (self.kernel, self.kernel)
        w = refcomp.placeholder((*kernel, self.channels, self.filters), name="w")
        bias = refcomp.placeholder((self.filters,), name="bias")
        return [x, w, bias, conv2d_nhwc(x, w, bias, **self.window)]

    def tiles(self) -> TiledSum:
        """Return the tiles that the schedule chooses."""
        *_, biased = self.convolution()
        assert isinstance(biased.op, ComputeOp)
        ops = [biased.op, *(tensor.op for tensor in biased.op.inputs)]
        found = [find_tiles(op) for op in ops if isinstance(op, ComputeOp)]
        return next(tiles for tiles in found if tiles is not None)

    def cut(self) -> _Layer:
        """Return the cut-out: one tile of rows and of filters, and few channels."""
        whole = self.tiles()
        (filters,) = (tile.size for tile in whole.columns)
        part = replace(
            self,
            channels=min(self.channels, _MAX_DEPTH.get(self.kernel, 128)),
            filters=filters,
            height=whole.rows[0].size,
        )
        assert _sizes(whole) == _sizes(part.tiles()), "the cut-out has tiles of its own"
        return part


def _sizes(found: TiledSum) -> list[tuple[int, int, int]]:
    """Return the tiles of all axes of more than one element."""
    tiles = (*found.rows, *found.columns)
    return [(t.lanes, t.registers, t.vector) for t in tiles if t.size > 1]


def _bottleneck(size: int, before: int, inside: int, after: int) -> list[_Layer]:
    """Return the distinct convolutions of a stage whose outputs have `size` rows."""
    layers = [
        _Layer(inside, inside, size, size, 3),
        _Layer(inside, after, size, size, 1),
        _Layer(after, inside, size, size, 1),
    ]
    if size == 56:
        return [*layers, _Layer(before, inside, size, size, 1)]
    return [
        _Layer(before, inside, 2 * size, 2 * size, 1),
        _Layer(inside, inside, size, size, 3, 2),
        _Layer(before, after, size, size, 1, 2),
        *layers,
    ]


_LAYERS = (
    _Layer(3, 64, 112, 112, 7, 2),
    *_bottleneck(56, 64, 64, 256),
    *_bottleneck(28, 256, 128, 512),
    *_bottleneck(14, 512, 256, 1024),
    *_bottleneck(7, 1024, 512, 2048),
)
_QUICK = (_Layer(64, 64, 56, 56, 3), _Layer(64, 256, 56, 56, 1))


def measure(is_quick: bool) -> list[Row]:
    """Return three rows for each layer and GPU. The results are checked first."""
    layers = _QUICK if is_quick else _LAYERS
    kernels = QUICK if is_quick else KERNELS
    rows = []
    for layer in layers:
        for gpu in _GPUS:
            rows += _rows(layer.title, gpu, _profile_layer(layer.cut(), gpu), is_product=True)
    for kernel in kernels:
        for gpu in _GPUS:
            report = _profile_kernel(kernel, gpu)
            rows += _rows(kernel.title, gpu, report, is_product=kernel.is_product)
    return rows


def _rows(title: str, gpu: str, report: ProfileReport, *, is_product: bool) -> list[Row]:
    counts = report.counts.by_class()
    useful = counts.get("VALU FMA", 0) + counts.get("MFMA", 0)
    others = counts.get("other VALU", 0)
    accesses = [one.access for one in report.counts.accesses("shared") if one.access]
    conflicts = sum(access.conflicts for access in accesses)
    figures = [
        ("unused global bytes", max(0.0, 1 - report.efficiency), _UNUSED),
        ("clocks of bank conflicts", float(conflicts), _CONFLICTS),
    ]
    if is_product:
        figures.insert(0, ("other vector instructions", others / (useful + others), _OTHERS))
    return [
        Row(_NAME, f"{title}, {gpu}: {what}", figure_of([value]), bar=bar, unit="")
        for what, value, bar in figures
    ]


@cache
def _profile_layer(layer: _Layer, gpu: str) -> ProfileReport:
    """Run a cut-out and return its report. Its result must be numpy's."""
    x, w, bias, biased = layer.convolution()
    given = _integers([x, w, bias])
    result, report = _run([x, w, bias], relu(biased), given, gpu)
    expected = np.maximum(conv2d_nhwc_numpy(*given, **layer.window), 0)
    np.testing.assert_array_equal(result, expected)
    return report


def _profile_kernel(kernel: Kernel, gpu: str) -> ProfileReport:
    """Run an operator and return the report on its only kernel. Its result must be numpy's."""
    inputs, output = kernel.tensors()
    given = _integers(inputs)
    result, report = _run(inputs, output, given, gpu)
    expected = kernel.numpy(*given, **kernel.attributes)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    return report


def _integers(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Return small integers for each tensor, so that all sums are exact."""
    random = np.random.default_rng(0)
    shapes = [[extent.value for extent in tensor.shape] for tensor in tensors]
    return [random.integers(-3, 4, shape).astype(np.float32) for shape in shapes]


def _run(
    inputs: Sequence[Tensor], output: Tensor, given: Sequence[np.ndarray], gpu: str
) -> tuple[np.ndarray, ProfileReport]:
    """Return the result of a computation with one kernel, and the report on it."""
    profile = refcomp.Profile()
    device = refcomp.rocm_emulator(gpu, profile=profile)
    schedule = schedule_gpu([output])
    with refcomp.build_options(contract=True):
        module = refcomp.build(schedule, [*inputs, output], f"rocm -mcpu={gpu}", name="subject")
    result = refcomp.empty([extent.value for extent in output.shape], device=device)
    module(*(refcomp.array(array, device) for array in given), result)
    (kernel,) = profile.kernels
    return result.asnumpy(), report_of(kernel, module, schedule)
