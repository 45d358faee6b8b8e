"""The operators of topi that a check of a GPU runs: on what, and how wrong a result may be.

By default every stage becomes a kernel of its own: one thread for an element. What is checked is
whether results are numpy's, not how fast they come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import refcomp
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import Tensor
from refcomp.topi.broadcast.arithmetic import add, add_numpy, divide, divide_numpy
from refcomp.topi.contraction.dense import gemm, gemm_numpy, matmul, matmul_numpy
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc, conv2d_nhwc_numpy, conv2d_numpy
from refcomp.topi.elementwise.activations import (
    clip,
    clip_numpy,
    relu,
    relu_numpy,
    sigmoid,
    sigmoid_numpy,
    tanh,
    tanh_numpy,
)
from refcomp.topi.movement.transform import (
    concatenate,
    concatenate_numpy,
    transpose,
    transpose_numpy,
)
from refcomp.topi.normalization.batch_norm import batch_norm, batch_norm_numpy
from refcomp.topi.normalization.softmax import softmax, softmax_numpy
from refcomp.topi.pooling.global_pool import global_avg_pool2d, global_avg_pool2d_numpy
from refcomp.topi.pooling.pool2d import (
    avg_pool2d,
    avg_pool2d_numpy,
    max_pool2d,
    max_pool2d_numpy,
)

_GROUP = 64
_EXACT = 1e-12  # less than an f32 or f16 can be off
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OperatorCase:
    """An operator on inputs of these shapes; `tolerance` is what its result may be off, relative
    to 1 and to the result."""

    name: str
    shapes: tuple[Shape, ...]
    compute: Callable[..., Any]
    meaning: Callable[..., Any]
    dtype: str = "float32"
    tolerance: float = 0.0

    def inputs(self) -> list[Any]:
        """Positive numbers, the same in every process."""
        rng = np.random.default_rng(7)
        return [rng.uniform(0.1, 1, shape).astype(self.dtype) for shape in self.shapes]

    def build(self, target: str, schedule_of: Callable[[Tensor], Schedule] | None = None) -> Module:
        """Build the operator for `target`, by default with one thread for each element."""
        pairs = enumerate(self.shapes)
        tensors = [refcomp.placeholder(shape, self.dtype, f"I{k}") for k, shape in pairs]
        result = self.compute(*tensors)
        schedule = (schedule_of or _element_a_thread)(result)
        module: Module = refcomp.build(schedule, [*tensors, result], target, name=self.name)
        return module

    def run(self, module: Module, device: Any) -> Any:
        """Return the operator's result on `device` as a numpy array."""
        wanted = self.meaning(*self.inputs())
        arrays = [refcomp.array(array, device) for array in self.inputs()]
        output = refcomp.empty(wanted.shape, self.dtype, device)
        module(*arrays, output)
        return output.asnumpy()

    def worst(self, result: Any) -> float:
        """Return the largest error of `result` over its bound. Above 1, the result is wrong."""
        wanted = np.asarray(self.meaning(*self.inputs()), np.float64)
        off = np.abs(result.astype(np.float64) - wanted) / (1 + np.abs(wanted))
        return float(off.max(initial=0.0)) / (self.tolerance or _EXACT)


def _element_a_thread(result: Tensor) -> Schedule:
    schedule = create_schedule(result)
    bind_every_stage(schedule)
    return schedule


def bind_every_stage(schedule: Schedule) -> None:
    """Fuse all axes of each computed stage, and bind them to groups of 64 threads."""
    for stage in [stage for stage in schedule.stages if isinstance(stage.op, ComputeOp)]:
        bound, axes = schedule[stage.op], stage.op.axis
        whole = bound.fuse(*axes) if len(axes) > 1 else axes[0]
        block, thread = bound.split(whole, factor=_GROUP)
        bound.bind(block, refcomp.thread_axis("blockIdx.x"))
        bound.bind(thread, refcomp.thread_axis("threadIdx.x"))


def _pair(function: Callable[..., Any], meaning: Callable[..., Any], **options: Any) -> Any:
    return partial(function, **options), partial(meaning, **options)


_IMAGE, _WINDOW = (2, 4, 9, 7), {"kernel": (3, 2), "strides": (2, 1)}
_ONE_PAD = {"padding": (1, 0, 1, 1)}
CASES: Sequence[OperatorCase] = (
    OperatorCase("add", ((5, 1, 7), (3, 1)), add, add_numpy),
    OperatorCase("add_f16", ((100,), (100,)), add, add_numpy, "float16"),
    OperatorCase("divide", ((5, 7), (7,)), divide, divide_numpy),
    OperatorCase("relu", ((1000,),), relu, relu_numpy),
    OperatorCase("clip", ((1000,),), *_pair(clip, clip_numpy, minimum=0.3, maximum=0.7)),
    OperatorCase("sigmoid", ((1000,),), sigmoid, sigmoid_numpy, tolerance=1e-6),
    OperatorCase("tanh", ((1000,),), tanh, tanh_numpy, tolerance=1e-6),
    OperatorCase("tanh_f16", ((1000,),), tanh, tanh_numpy, "float16", tolerance=2e-3),
    OperatorCase("softmax", ((7, 33),), softmax, softmax_numpy, tolerance=1e-6),
    OperatorCase("gemm", ((33, 17), (17, 29)), gemm, gemm_numpy, tolerance=1e-5),
    OperatorCase("matmul", ((2, 9, 5), (1, 5, 7)), matmul, matmul_numpy, tolerance=1e-5),
    OperatorCase(
        "conv2d",
        (_IMAGE, (6, 4, 3, 3), (6,)),
        *_pair(conv2d, conv2d_numpy, strides=(2, 1), **_ONE_PAD),
        tolerance=1e-5,
    ),
    OperatorCase(
        "conv2d_groups",
        (_IMAGE, (6, 2, 3, 3)),
        *_pair(conv2d, conv2d_numpy, groups=2, dilation=(2, 1)),
        tolerance=1e-5,
    ),
    OperatorCase(
        "conv2d_nhwc", ((1, 9, 7, 4), (3, 3, 4, 6)), conv2d_nhwc, conv2d_nhwc_numpy, tolerance=1e-5
    ),
    OperatorCase("max_pool2d", (_IMAGE,), *_pair(max_pool2d, max_pool2d_numpy, **_WINDOW)),
    OperatorCase(
        "avg_pool2d",
        (_IMAGE,),
        *_pair(avg_pool2d, avg_pool2d_numpy, **_WINDOW, **_ONE_PAD),
        tolerance=1e-6,
    ),
    OperatorCase(
        "global_avg_pool2d", (_IMAGE,), global_avg_pool2d, global_avg_pool2d_numpy, tolerance=1e-5
    ),
    OperatorCase(
        "batch_norm", (_IMAGE, (4,), (4,), (4,), (4,)), batch_norm, batch_norm_numpy, tolerance=1e-5
    ),
    OperatorCase("transpose", ((5, 6, 7),), *_pair(transpose, transpose_numpy, axes=(2, 0, 1))),
    OperatorCase("concatenate", ((5, 6), (5, 3)), *_pair(concatenate, concatenate_numpy, axis=1)),
)
