"""The operator `shape_of`: extents as elements of a tensor."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import extents, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.indices import read_existing
from refcomp.topi.movement.rearrange import one_operand_of
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array


def shape_of(data: Tensor) -> Tensor:
    """Return the extents of a tensor as integers.

    Args:
        data: a tensor of any dtype. Its elements do not matter. If an extent is 0, all others are
            constants, too.

    Returns:
        An i64 tensor of one dimension, with an element for each axis of `data`.

    Raises:
        UserError: `data` is not a tensor, or has no elements and a symbolic extent.

    Reference: ONNX Shape; TVM topi.shape.

    Example::

        >>> A = rc.placeholder((2, 3), name="A")
        >>> B = rc.topi.shape_of(A)
        >>> print(*rc.oracle.evaluate([B], {}))
        [2 3]
    """
    require_tensor(data, "shape_of")
    sizes = extents(data)
    has_symbols = not all(isinstance(size, int) for size in sizes)
    if has_symbols and 0 in sizes:
        raise UserError(
            "shape_of cannot find symbols in a tensor without elements",
            why="a kernel knows the extents of the tensors that it reads",
            remedy="declare numbers in place of the symbols",
            earlier=[data.declaration()],
        )

    def element(axis: Expr) -> Expr:
        value = as_dim(0)
        for place, size in reversed(list(enumerate(sizes))):
            value = maths.select(axis == place, as_dim(size), value)
        value = value.astype("int64")
        if not has_symbols:
            return value
        # A kernel knows the extents of the tensors that it reads. This read never happens.
        first = read_existing(data, [0] * data.ndim, range(data.ndim))
        return maths.if_then_else(axis < 0, first.astype("int64"), value)

    return compute((len(sizes),), element, name="shape_of", tag=INJECTIVE)


def _sample_shape_of(draws: Draws) -> Sample:
    return one_operand_of(draws)


@meaning_of(shape_of, sample=_sample_shape_of, pattern="injective")
def shape_of_numpy(data: Array) -> Array:
    return np.array(data.shape, np.int64)
