"""Operators that `workload` counts besides convolutions: rows, moves, products, windows.

The extents are usual in networks. Rows are whole segments of memory, and windows lie inside the
image. So a schedule can use all bytes that it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import refcomp
from refcomp.te.tensor import Tensor
from refcomp.topi.operator import find_operator

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A call of an operator.

    Attributes:
        operator: its name.
        shapes: the shapes of its operands.
        attributes: name -> value.
        is_product: True if most of its vector instructions should multiply and add.
    """

    operator: str
    shapes: tuple[Shape, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    is_product: bool = False

    @property
    def title(self) -> str:
        shapes = ", ".join("x".join(map(str, shape)) for shape in self.shapes)
        return f"{self.operator} {shapes}"

    @property
    def numpy(self) -> Callable[..., Any]:
        return find_operator(self.operator).numpy

    def tensors(self) -> tuple[list[Tensor], Tensor]:
        """Return the operands and the result."""
        given = [refcomp.placeholder(shape, name=f"p{k}") for k, shape in enumerate(self.shapes)]
        return given, find_operator(self.operator).compute(*given, **self.attributes)


_ROWS: Shape = (64, 1024)
_IMAGE: Shape = (1, 30, 32, 64)

KERNELS = (
    Kernel("softmax", (_ROWS,)),
    Kernel("log_softmax", (_ROWS,)),
    Kernel("layer_norm", ((64, 768), (768,), (768,))),
    Kernel("sum", (_ROWS,), {"axis": (1,)}),
    Kernel("sum", ((256, 1024),), {"axis": (0,)}),
    Kernel("max", (_ROWS,), {"axis": (1,)}),
    Kernel("transpose", ((256, 512),), {"axes": (1, 0)}),
    Kernel("transpose", ((1, 64, 32, 32),), {"axes": (0, 2, 3, 1)}),
    Kernel("relu", ((64, 1024),)),
    Kernel("add", ((64, 1024), (1024,))),
    Kernel("matmul", ((256, 256), (256, 256)), is_product=True),
    Kernel("batch_matmul", ((4, 128, 64), (4, 64, 128)), {"transpose_b": False}, is_product=True),
    Kernel("depthwise_conv2d_nhwc", (_IMAGE, (3, 3, 64, 1))),
    Kernel("max_pool2d", (_IMAGE,), {"kernel": (3, 3), "strides": (2, 2), "layout": "NHWC"}),
)
QUICK = (KERNELS[0], KERNELS[6])
