"""Computes that work element by element: one operand, or several with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable

from refcomp.ir.expr import Expr
from refcomp.te.extents import require_tensor
from refcomp.te.operation import broadcast_elements, compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.shapes import require_one_dtype


def map_elements(data: Tensor, function: Callable[[Expr], Expr], name: str) -> Tensor:
    """Return the tensor of function(element) for each element of `data`."""
    require_tensor(data, name)
    return compute(
        data.shape, lambda *index: function(data[index]), name=name, tag=INJECTIVE
    )


def combine_elements(
    a: Tensor, b: Tensor, function: Callable[[Expr, Expr], Expr], name: str
) -> Tensor:
    """Return function(x, y) for the elements x of `a` and y of `b`, with broadcasting.

    Raises:
        UserError: an operand is not a tensor, the dtypes differ, or the shapes do not broadcast.
    """
    require_tensor(a, name)
    require_tensor(b, name)
    require_one_dtype(name, a, b)
    return broadcast_elements((a, b), function, name)
