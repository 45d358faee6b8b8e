"""One step of a recurrent cell, as computes on the states of all samples of the batch.

A cell with g gates of h hidden units has weights of g * h rows. First come all rows of the first
gate, then those of the second. A bias has twice as many elements. The first half is added to the
products with the input, the second half to the products with the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.recurrent.activations import CellActivations
from refcomp.topi.shapes import Array
from refcomp.topi.tags import REDUCTION, SHARED

# Reads the element of a row: of a weight, or of a state (sample, unit).
ReadRow = Callable[[Expr], Expr]
ReadState = Callable[[Expr, Expr], Expr]


@dataclass(frozen=True, slots=True)
class CellStep:
    """The operands of one step of a cell. All values have the dtype `wide`.

    Attributes:
        batch: the number of samples.
        hidden: the number of hidden units.
        dtype: the dtype of the states.
        wide: the dtype of sums and gates: at least f32.
        product: the product of the input with a row of the weights.
        recurrence: an element of the weights of the state, by row and unit.
        activations: the functions of the gates.
        input_bias: the bias that is added to a product with the input, if there is one.
        state_bias: the bias that is added to a product with the state, if there is one.
        peephole: the weight of the cell's state in a gate, if there is one.
        is_active: True for samples whose sequence has this step; None if all have it.
    """

    batch: Extent
    hidden: int
    dtype: DType
    wide: DType
    product: ReadState
    recurrence: ReadState
    activations: CellActivations
    input_bias: ReadRow | None = None
    state_bias: ReadRow | None = None
    peephole: ReadRow | None = None
    is_active: Callable[[Expr], Expr] | None = None

    def read(self, state: Tensor) -> ReadState:
        """Return a function that reads an element of `state`."""
        return lambda b, j: state[b, j].astype(self.wide)

    def multiply(self, state: ReadState, first: int, rows: int) -> Tensor:
        """Return the products of `state` with `rows` rows of the weights, from `first` on."""
        k = reduce_axis(self.hidden, "k")

        def element(b: Expr, row: Expr) -> Expr:
            term = state(b, k.var) * self.recurrence(row + first, k.var)
            return reducer.sum(term, axis=k)

        return compute((self.batch, rows), element, name="recurrent", tag=REDUCTION)

    def input_part(self, b: Expr, row: Expr) -> Expr:
        """Return the product of the input with a row, and its bias."""
        value = self.product(b, row)
        return value if self.input_bias is None else value + self.input_bias(row)

    def state_part(self, product: Expr, row: Expr) -> Expr:
        """Return a product of the state with a row, and its bias."""
        return product if self.state_bias is None else product + self.state_bias(row)

    def next_state(self, value: ReadState, old: ReadState, name: str) -> Tensor:
        """Return the tensor of the new state: the old one for samples that have ended."""

        def element(b: Expr, j: Expr) -> Expr:
            found = value(b, j)
            if self.is_active is not None:
                found = maths.select(self.is_active(b), found, old(b, j))
            return found.astype(self.dtype)

        # In memory of its own, since each step reads the state several times.
        return compute((self.batch, self.hidden), element, name=name, tag=SHARED)


def rnn_step(step: CellStep, hidden: ReadState) -> Tensor:
    """Return the state after a step of a plain cell."""
    recurrent = step.multiply(hidden, 0, step.hidden)

    def value(b: Expr, j: Expr) -> Expr:
        inner = step.input_part(b, j) + step.state_part(recurrent[b, j], j)
        return step.activations.apply(0, inner)

    return step.next_state(value, hidden, "hidden")


def gru_step(step: CellStep, hidden: ReadState, linear_before_reset: bool) -> Tensor:
    """Return the state after a step of a GRU; its gates are update, reset and candidate.

    Its activations are that of update and reset, and that of the candidate.
    """
    size = step.hidden
    gates = step.multiply(hidden, 0, 3 * size if linear_before_reset else 2 * size)

    def gate(b: Expr, j: Expr, number: int) -> Expr:
        row = j + number * size
        inner = step.input_part(b, row) + step.state_part(gates[b, row], row)
        return step.activations.apply(0, inner)

    def reset_state(b: Expr, j: Expr) -> Expr:
        return gate(b, j, 1) * hidden(b, j)

    if linear_before_reset:
        candidates = gates
    else:
        shape = (step.batch, size)
        reset = compute(shape, reset_state, name="reset", tag=SHARED)
        candidates = step.multiply(lambda b, j: reset[b, j], 2 * size, size)

    def value(b: Expr, j: Expr) -> Expr:
        row = j + 2 * size
        if linear_before_reset:
            state = gate(b, j, 1) * step.state_part(candidates[b, row], row)
        else:
            state = step.state_part(candidates[b, j], row)
        candidate = step.activations.apply(1, step.input_part(b, row) + state)
        update = gate(b, j, 0)
        one = const(1, step.wide)
        return (one - update) * candidate + update * hidden(b, j)

    return step.next_state(value, hidden, "hidden")


def lstm_step(
    step: CellStep, hidden: ReadState, cell: ReadState, *, input_forget: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the hidden state and the cell's state after a step of an LSTM.

    Its gates are input, output, forget and candidate; the peepholes are of the first three. Its
    activations are that of these gates, that of the candidate, and that of the cell's state. With
    `input_forget`, what is not admitted is kept.
    """
    apply = step.activations.apply
    size = step.hidden
    gates = step.multiply(hidden, 0, 4 * size)

    def inner(b: Expr, j: Expr, number: int, seen: ReadState | None = None) -> Expr:
        row = j + number * size
        total = step.input_part(b, row) + step.state_part(gates[b, row], row)
        if seen is None or step.peephole is None:
            return total
        return total + step.peephole(row) * seen(b, j)

    def cell_value(b: Expr, j: Expr) -> Expr:
        admitted = apply(0, inner(b, j, 0, cell))
        rest = const(1, step.wide) - admitted
        kept = rest if input_forget else apply(0, inner(b, j, 2, cell))
        return kept * cell(b, j) + admitted * apply(1, inner(b, j, 3))

    next_cell = step.next_state(cell_value, cell, "cell")
    read_cell = step.read(next_cell)

    def hidden_value(b: Expr, j: Expr) -> Expr:
        return apply(0, inner(b, j, 1, read_cell)) * apply(2, read_cell(b, j))

    return step.next_state(hidden_value, hidden, "hidden"), next_cell


# Meanings: of the states after a step, for arrays in f64. A bias is split into its two halves.


def rnn_step_numpy(
    activations: CellActivations, x: Array, h: Array, w: Array, r: Array, bias: Array
) -> Array:
    """Return the state after a step of a plain cell."""
    wb, rb = np.split(bias, 2)
    return activations.apply_numpy(0, x @ w.T + wb + h @ r.T + rb)


def gru_step_numpy(
    activations: CellActivations,
    linear_before_reset: bool,
    x: Array,
    h: Array,
    w: Array,
    r: Array,
    bias: Array,
) -> Array:
    """Return the state after a step of a GRU."""
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    wbz, wbr, wbh, rbz, rbr, rbh = np.split(bias, 6)
    z = activations.apply_numpy(0, x @ wz.T + wbz + h @ rz.T + rbz)
    reset = activations.apply_numpy(0, x @ wr.T + wbr + h @ rr.T + rbr)
    after = reset * (h @ rh.T + rbh)
    before = (reset * h) @ rh.T + rbh
    state = after if linear_before_reset else before
    candidate = activations.apply_numpy(1, x @ wh.T + wbh + state)
    return np.asarray((1 - z) * candidate + z * h)


def lstm_step_numpy(
    activations: CellActivations,
    input_forget: bool,
    x: Array,
    h: Array,
    c: Array,
    w: Array,
    r: Array,
    bias: Array,
    peephole: Array | None = None,
) -> tuple[Array, Array]:
    """Return the hidden state and the cell's state after a step of an LSTM."""
    apply = activations.apply_numpy
    wb, rb = np.split(bias, 2)
    gates = x @ w.T + wb + h @ r.T + rb
    i, o, f, g = np.split(gates, 4, axis=-1)
    # Not zeros for missing peepholes: 0 * infinity is NaN.
    if peephole is not None:
        pi, po, pf = np.split(peephole, 3)
        i = i + pi * c
        f = f + pf * c
    admitted = apply(0, i)
    kept = 1 - admitted if input_forget else apply(0, f)
    new = kept * c + admitted * apply(1, g)
    if peephole is not None:
        o = o + po * new
    return apply(0, o) * apply(2, new), new
