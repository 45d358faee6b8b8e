"""Single recurrent cells: one step, whose weights have no axis of directions."""

from __future__ import annotations

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr
from refcomp.te import reducer
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws
from refcomp.topi.normalization.moments import sum_dtype
from refcomp.topi.recurrent.activations import CellActivations
from refcomp.topi.recurrent.sequences import require_shape
from refcomp.topi.recurrent.steps import CellStep, ReadRow
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.tags import REDUCTION


def make_cell(
    operator: str,
    gates: int,
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None,
    *,
    states: dict[str, Tensor],
    activations: CellActivations,
    peephole: Tensor | None = None,
) -> CellStep:
    """Return the step of a cell with `gates` gates. Raise UserError for operands that do not fit.

    Args:
        operator: the name of the operator, for messages.
        gates: the number of gates.
        data: [batch, inputs].
        weight: [gates * hidden, inputs].
        recurrence: [gates * hidden, hidden].
        bias: [2 * gates * hidden], or None.
        states: name -> [batch, hidden].
        activations: the functions of the gates.
        peephole: [3 * hidden], or None.
    """
    require_float(data, operator)
    require_rank(data, 2, operator, "the data")
    require_rank(recurrence, 2, operator, "recurrence")
    batch, inputs = extents(data)
    hidden = require_constant(
        extents(recurrence)[1], f"{operator}: the number of hidden units"
    )
    rows = gates * hidden
    expected = {
        "weight": (weight, (rows, inputs)),
        "recurrence": (recurrence, (rows, hidden)),
        "bias": (bias, (2 * rows,)),
        "peephole": (peephole, (3 * hidden,)),
    }
    for name, tensor in states.items():
        expected[name] = (tensor, (batch, hidden))
    for name, (given, shape) in expected.items():
        if given is not None:
            require_shape(given, shape, operator, name)
            require_one_dtype(operator, data, given)
    wide = sum_dtype(data)
    products = _input_products(data, weight, wide)
    return CellStep(
        batch=batch,
        hidden=hidden,
        dtype=data.dtype,
        wide=wide,
        product=lambda b, row: products[b, row],
        recurrence=lambda row, k: recurrence[row, k].astype(wide),
        activations=activations,
        input_bias=_row_reader(bias, wide, 0),
        state_bias=_row_reader(bias, wide, rows),
        peephole=_row_reader(peephole, wide, 0),
    )


def _input_products(data: Tensor, weight: Tensor, wide: DType) -> Tensor:
    batch, inputs = extents(data)
    k = reduce_axis(inputs, "k")

    def element(b: Expr, row: Expr) -> Expr:
        factor = weight[row, k.var].astype(wide)
        return reducer.sum(data[b, k.var].astype(wide) * factor, axis=k)

    shape = (batch, extents(weight)[0])
    return compute(shape, element, name="products", tag=REDUCTION)


def _row_reader(tensor: Tensor | None, wide: DType, first: int) -> ReadRow | None:
    if tensor is None:
        return None
    return lambda row: tensor[row + first].astype(wide)


def sample_cell(
    draws: Draws, gates: int, states: int
) -> tuple[list[Array | None], int, str]:
    """Return the data, the states, weight, recurrence and bias; hidden units and the dtype."""
    batch = draws.extent(0)
    inputs = draws.integer(1, 3)
    hidden = draws.integer(1, 3)
    dtype = draws.float_dtype()
    rows = gates * hidden
    operands: list[Array | None] = [draws.array((batch, inputs), dtype)]
    operands += [draws.array((batch, hidden), dtype) for _ in range(states)]
    operands += [
        draws.uniform((rows, inputs), -1, 1, dtype),
        draws.uniform((rows, hidden), -1, 1, dtype),
        draws.uniform((2 * rows,), -1, 1, dtype) if draws.flag() else None,
    ]
    return operands, hidden, dtype
