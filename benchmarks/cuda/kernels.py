"""What the benchmarks of NVIDIA GPUs time: modules by refcomp's default schedules, and their sizes.

Indices are narrowed and multiply-adds fused, as users of the libraries beside them would permit.
"""

from __future__ import annotations

from dataclasses import dataclass

import refcomp
from refcomp.ir.expr import Expr
from refcomp.runtime.module import Module
from refcomp.te.tensor import Tensor

BATCH = 32


@dataclass(frozen=True, slots=True)
class ConvolutionLayer:
    """A 3 x 3 convolution of ResNet-50, with as many filters as channels."""

    size: int  # height and width
    channels: int

    @property
    def title(self) -> str:
        """The name of the layer in tables."""
        return f"3x3, {self.size}x{self.size}x{self.channels}, batch {BATCH}"

    @property
    def gflop(self) -> float:
        """The operations of the direct algorithm; multiply-adds are two."""
        return 2e-9 * BATCH * self.size**2 * 9 * self.channels**2


LAYERS = tuple(ConvolutionLayer(s, c) for s, c in ((56, 64), (28, 128), (14, 256), (7, 512)))


def build_addition(count: int, target: str) -> Module:
    """C = A + B for vectors of `count` f32."""
    a, b = (refcomp.placeholder((count,), name=name) for name in "AB")
    return _built("addition", [a, b], refcomp.topi.add(a, b), target)


def build_product(n: int, target: str) -> Module:
    """C = A B for n x n matrices of f32."""
    a, b = (refcomp.placeholder((n, n), name=name) for name in "AB")
    return _built("product", [a, b], refcomp.topi.gemm(a, b), target)


def build_product_of_halves(n: int, target: str) -> Module:
    """C = A B for n x n matrices of f16, with sums and C of f32, on tensor cores."""
    a, b = (refcomp.placeholder((n, n), "float16", name) for name in "AB")
    k = refcomp.reduce_axis(n, "k")

    def element(i: Expr, j: Expr) -> Expr:
        return refcomp.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k)

    c = refcomp.compute((n, n), element, name="C")
    schedule = refcomp.topi.schedule_tensor_cores(c)
    module: Module = refcomp.build(schedule, [a, b, c], target, name="product_f16")
    return module


def build_convolution(layer: ConvolutionLayer, target: str, batch: int = BATCH) -> Module:
    """A convolution of [n, y, x, c] by weights [y, x, c, o], with a border of one zero."""
    image = (batch, layer.size, layer.size, layer.channels)
    data = refcomp.placeholder(image, name="data")
    weights = refcomp.placeholder((3, 3, layer.channels, layer.channels), name="weights")
    output = refcomp.topi.conv2d_nhwc(data, weights, padding=(1, 1, 1, 1))
    return _built("convolution", [data, weights], output, target)


def _built(name: str, inputs: list[Tensor], output: Tensor, target: str) -> Module:
    schedule = refcomp.topi.schedule_cuda([output])
    with refcomp.build_options(contract=True, narrow_indices=True):
        module: Module = refcomp.build(schedule, [*inputs, output], target, name=name)
    return module
