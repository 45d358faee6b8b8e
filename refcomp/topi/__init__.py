"""Operators: each as a te compute, with its meaning in numpy beside it in the same file.

An operator takes tensors and returns a tensor; `split` returns a list. Below each operator,
`NAME_numpy` defines its meaning on arrays: floats are evaluated in f64 and rounded once. Compiled
code rounds at every operation and may differ by these roundings. Integers wrap in both.

Reading order: sources.py (which file defines which operator), shapes.py (checks and extents),
elements.py, operator.py (the registry), draws.py (samples of operands); then the operators by
family:

- `elementwise/`: of one tensor: relu and its kin
- `broadcast/`: of two or more tensors, with numpy's broadcasting
- `reduction/`: along axes: sums, extrema, norms
- `movement/`: that only move elements: reshape, transpose, slices, pad, gather
- `search/`: by values: sort, topk, unique, nonzero, searchsorted
- `contraction/`: products that are summed: matmul, dense, det, quantized and bit-serial ones
- `convolution/`, with spatial_padding.py: its windows.py is shared by all layouts
- `pooling/`: windows that are reduced
- `normalization/`: by statistics of the data: batch norm and its kin, softmax
- `recurrent/`: cells and layers of RNN, GRU and LSTM
- `transformer/`: weighted means of values, rotations by position
- `losses/`: distances of predictions from targets
- `signal/`: Fourier transforms, windows
- `random_numbers/`: counter-based generators, keys, distributions
- `conversion/`: casts among dtypes, quantization
- `image/`: resizing, sampling at positions, windows as columns
- `detection/`: regions of interest, boxes, anchors, YOLO layers

and at last tags.py and the schedules by kind of target in schedules/, which generic.py chooses
from.

Example::

    >>> A, B = rc.placeholder((2, 3), name="A"), rc.placeholder((3, 2), name="B")
    >>> C = rc.topi.relu(rc.topi.matmul(A, B))
    >>> a, b = np.ones((2, 3), "float32"), np.array([[1, -1]] * 3, "float32")
    >>> print(*rc.oracle.evaluate([C], {A: a, B: b}))
    [[3. 0.]
     [3. 0.]]
    >>> s = rc.topi.schedule_llvm([C])
    >>> [step.primitive for step in s.steps][:2]
    ['set_scope', 'split']
"""

import sys
from importlib import import_module
from typing import Any

from refcomp.topi.sources import OPERATOR_HOMES, SCHEDULE_HOMES

_HOMES = OPERATOR_HOMES | SCHEDULE_HOMES
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Return a public name, and import its file on first use."""
    if (
        name == "generic"
    ):  # as the classic tutorials write: topi.generic.schedule_injective
        return import_module("refcomp.topi.generic")
    if name not in _HOMES:
        # Python suggests a near name of the module.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}",
            name=name,
            obj=sys.modules[__name__],
        )
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
