"""Operators: each as a te compute, with its meaning in numpy beside it in the same file.

An operator takes tensors and returns a tensor; `split` returns a list. Below each operator,
`NAME_numpy` defines its meaning on arrays: floats are evaluated in f64 and rounded once. Compiled
code rounds at every operation and may differ by these roundings. Integers wrap in both.

Reading order: shapes.py (checks and extents), elements.py, operator.py (the registry), draws.py
(samples of operands); then the operators by family:

- `elementwise/`: of one tensor: relu and its kin
- `broadcast/`: of two tensors, with numpy's broadcasting
- `movement/`: that only move elements: reshape, transpose, concatenate, split
- `contraction/`: products that are summed: matmul, gemm
- `convolution/`, with spatial_padding.py
- `pooling/`: windows that are reduced
- `normalization/`: batch norm, softmax

and at last tags.py and the schedules by kind of target in schedules/.

Example::

    >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3, 2), name="B")
    >>> C = rc.topi.relu(rc.topi.matmul(A, B))
    >>> a, b = np.ones((2, 3), "float32"), np.array([[1, -1]] * 3, "float32")
    >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
    [[3. 0.]
     [3. 0.]]
    >>> s = rc.topi.schedule_llvm([C])
    >>> [step.primitive for step in s.steps][:2]
    ['split', 'split']
"""

from refcomp.topi.broadcast.arithmetic import add, divide, multiply, scale, subtract
from refcomp.topi.contraction.dense import gemm, matmul
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc
from refcomp.topi.convolution.conv2d_nchwc import conv2d_nchwc
from refcomp.topi.elementwise.activations import clip, identity, relu, sigmoid, tanh
from refcomp.topi.movement.transform import (
    concatenate,
    flatten,
    reshape,
    split,
    transpose,
)
from refcomp.topi.normalization.batch_norm import batch_norm
from refcomp.topi.normalization.softmax import softmax
from refcomp.topi.pooling.pool2d import avg_pool2d, global_avg_pool2d, max_pool2d
from refcomp.topi.schedules.cuda import schedule_cuda
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import schedule_llvm
from refcomp.topi.schedules.tensor_cores import (
    TensorCoreBlock,
    schedule_tensor_cores,
)

# fmt: off
__all__ = [
    "add", "subtract", "multiply", "divide", "scale",
    "relu", "sigmoid", "tanh", "clip", "identity",
    "matmul", "gemm", "softmax", "batch_norm",
    "conv2d", "conv2d_nhwc", "conv2d_nchwc",
    "max_pool2d", "avg_pool2d", "global_avg_pool2d",
    "reshape", "flatten", "transpose", "concatenate", "split",
    "schedule_llvm", "schedule_gpu", "schedule_cuda",
    "schedule_tensor_cores", "TensorCoreBlock",
]
# fmt: on


def __dir__() -> list[str]:
    return sorted(__all__)
