"""Layers of recurrent cells: a cell that is applied along a sequence, in one or both directions.

The steps are unrolled, so the number of steps is a constant. A sequence that is shorter than the
longest one keeps its state after its end; going backwards, it begins at its own end.

Reference: ONNX RNN, GRU and LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws
from refcomp.topi.normalization.moments import rounded, sum_dtype
from refcomp.topi.recurrent.activations import CellActivations
from refcomp.topi.recurrent.steps import CellStep, ReadRow, ReadState
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.tags import REDUCTION

# Direction -> for each pass over the sequence, True if it goes backwards.
DIRECTIONS = {
    "forward": (False,),
    "reverse": (True,),
    "bidirectional": (False, True),
}
# Makes the states after a step from those before it; the first one is the output.
AdvanceStates = Callable[[CellStep, Sequence[ReadState]], Sequence[Tensor]]


@dataclass(frozen=True, slots=True)
class RecurrentLayer:
    """The checked operands of a layer of recurrent cells.

    Attributes:
        operator: the name of the operator, for messages.
        backwards: for each direction, True if it goes backwards.
        layout: 0 if the steps are the first axis of the data, 1 if the samples are.
        steps: the number of steps.
        batch: the number of samples.
        inputs: the number of inputs of a step.
        hidden: the number of hidden units.
        data: the sequences.
        weight: the weights of the inputs.
        recurrence: the weights of the state.
        bias: both biases.
        sequence_lens: the number of steps of each sample.
        initial: the states before the first step; None for zeros.
        activations: the functions of the gates, for each direction.
        peephole: the weights of the cell's state in gates.
    """

    operator: str
    backwards: tuple[bool, ...]
    layout: int
    steps: int
    batch: Extent
    inputs: Extent
    hidden: int
    data: Tensor
    weight: Tensor
    recurrence: Tensor
    bias: Tensor | None
    sequence_lens: Tensor | None
    initial: tuple[Tensor | None, ...]
    activations: tuple[CellActivations, ...]
    peephole: Tensor | None

    @property
    def wide(self) -> DType:
        """Return the dtype of sums and gates."""
        return sum_dtype(self.data)


def make_layer(
    operator: str,
    gates: int,
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None,
    sequence_lens: Tensor | None,
    *,
    initial: Sequence[Tensor | None],
    direction: str,
    layout: int,
    activations: Callable[[int], tuple[CellActivations, ...]],
    peephole: Tensor | None = None,
) -> RecurrentLayer:
    """Return the layer. Raise UserError for operands that do not fit.

    `activations` returns those of each direction, given the number of directions.
    """
    _check_choices(operator, direction, layout)
    require_float(data, operator)
    require_rank(data, 3, operator, "the data")
    require_rank(recurrence, 3, operator, "recurrence")
    steps, batch, inputs = extents(data)
    if layout == 1:
        steps, batch = batch, steps
    hidden = require_constant(
        extents(recurrence)[2], f"{operator}: the number of hidden units"
    )
    count = len(DIRECTIONS[direction])
    rows = gates * hidden
    state = (count, batch, hidden) if layout == 0 else (batch, count, hidden)
    expected: dict[str, tuple[Tensor | None, tuple[Extent, ...]]] = {
        "weight": (weight, (count, rows, inputs)),
        "recurrence": (recurrence, (count, rows, hidden)),
        "bias": (bias, (count, 2 * rows)),
        "peephole": (peephole, (count, 3 * hidden)),
    }
    for name, given in zip(("initial_h", "initial_c"), initial, strict=False):
        expected[name] = (given, state)
    for name, (tensor, shape) in expected.items():
        if tensor is not None:
            require_shape(tensor, shape, operator, name)
            require_one_dtype(operator, data, tensor)
    if sequence_lens is not None:
        _check_lengths(sequence_lens, batch, operator)
    return RecurrentLayer(
        operator,
        backwards=DIRECTIONS[direction],
        layout=layout,
        steps=require_constant(steps, f"{operator}: the number of steps"),
        batch=batch,
        inputs=inputs,
        hidden=hidden,
        data=data,
        weight=weight,
        recurrence=recurrence,
        bias=bias,
        sequence_lens=sequence_lens,
        initial=tuple(initial),
        activations=activations(count),
        peephole=peephole,
    )


def _check_choices(operator: str, direction: str, layout: int) -> None:
    if direction not in DIRECTIONS:
        raise UserError(
            f"{operator} does not know the direction {direction!r}",
            remedy=f"use {', '.join(DIRECTIONS)}",
        )
    if layout not in (0, 1):
        raise UserError(
            f"{operator} does not know the layout {layout}",
            remedy="use 0 for [steps, batch, inputs], or 1 for [batch, steps, inputs]",
        )


def require_shape(
    tensor: Tensor, shape: Sequence[Extent], operator: str, name: str
) -> None:
    """Raise UserError unless an operand has this shape."""
    require_rank(tensor, len(shape), operator, name)
    pairs = zip(extents(tensor), shape, strict=True)
    for k, (actual, expected) in enumerate(pairs):
        require_extent(
            actual, expected, operator, f"extent {k} of {name}", tensors=(tensor,)
        )


def _check_lengths(lengths: Tensor, batch: Extent, operator: str) -> None:
    require_tensor(lengths, operator)
    if lengths.dtype.is_float or lengths.dtype.is_bool:
        raise UserError(
            f"{operator} takes lengths of sequences as integers, not {lengths.dtype}",
            remedy="give a tensor of int32",
            earlier=[lengths.declaration()],
        )
    require_shape(lengths, (batch,), operator, "sequence_lens")


def run_layer(layer: RecurrentLayer, advance: AdvanceStates) -> list[Tensor]:
    """Return the outputs of all steps, and each state after the last step."""
    outputs: list[list[Tensor]] = []
    last: list[list[ReadState]] = []
    for direction, is_backward in enumerate(layer.backwards):
        products = _input_products(layer, direction)
        states = _initial_states(layer, direction)
        found: dict[int, Tensor] = {}
        order = range(layer.steps)
        for t in reversed(order) if is_backward else order:
            step = _make_step(layer, direction, products, t)
            tensors = advance(step, states)
            states = [step.read(tensor) for tensor in tensors]
            found[t] = tensors[0]
        outputs.append([found[t] for t in order])
        last.append(states)
    finals = [
        _join_directions(layer, [states[k] for states in last])
        for k in range(len(layer.initial))
    ]
    return [_stack(layer, outputs), *finals]


def _input_products(layer: RecurrentLayer, direction: int) -> Tensor:
    """Return the products of all inputs with the weights: [steps, batch, rows]."""
    k = reduce_axis(layer.inputs, "k")
    wide = layer.wide

    def element(t: Expr, b: Expr, row: Expr) -> Expr:
        index = (t, b, k.var) if layer.layout == 0 else (b, t, k.var)
        factor = layer.weight[direction, row, k.var].astype(wide)
        return reducer.sum(layer.data[index].astype(wide) * factor, axis=k)

    rows = extents(layer.weight)[1]
    shape = (layer.steps, layer.batch, rows)
    return compute(shape, element, name="products", tag=REDUCTION)


def _initial_states(layer: RecurrentLayer, direction: int) -> list[ReadState]:
    def reader(tensor: Tensor | None) -> ReadState:
        if tensor is None:
            return lambda b, j: const(0, layer.wide)
        return lambda b, j: tensor[_state_index(layer, direction, b, j)].astype(
            layer.wide
        )

    return [reader(tensor) for tensor in layer.initial]


def _state_index(
    layer: RecurrentLayer, direction: int | Expr, b: Expr, j: Expr
) -> tuple[Expr | int, ...]:
    return (direction, b, j) if layer.layout == 0 else (b, direction, j)


def _make_step(
    layer: RecurrentLayer, direction: int, products: Tensor, t: int
) -> CellStep:
    rows = require_constant(extents(layer.weight)[1], "rows")
    lengths = layer.sequence_lens
    is_active: Callable[[Expr], Expr] | None = None
    if lengths is not None:
        is_active = lambda b: const(t, I64) < lengths[b].astype(I64)  # noqa: E731

    return CellStep(
        batch=layer.batch,
        hidden=layer.hidden,
        dtype=layer.data.dtype,
        wide=layer.wide,
        product=lambda b, row: products[t, b, row],
        recurrence=lambda row, k: layer.recurrence[direction, row, k].astype(
            layer.wide
        ),
        activations=layer.activations[direction],
        input_bias=_row_reader(layer.bias, layer.wide, direction, 0),
        state_bias=_row_reader(layer.bias, layer.wide, direction, rows),
        peephole=_row_reader(layer.peephole, layer.wide, direction, 0),
        is_active=is_active,
    )


def _row_reader(
    tensor: Tensor | None, wide: DType, direction: int, first: int
) -> ReadRow | None:
    if tensor is None:
        return None
    return lambda row: tensor[direction, row + first].astype(wide)


def _choose(place: Expr, first: int, count: int, value: Callable[[int], Expr]) -> Expr:
    """Return value(place) for first <= place < first + count, by bisection."""
    if count == 1:
        return value(first)
    half = count // 2
    low = _choose(place, first, half, value)
    high = _choose(place, first + half, count - half, value)
    return maths.if_then_else(place < first + half, low, high)


def _stack(layer: RecurrentLayer, outputs: Sequence[Sequence[Tensor]]) -> Tensor:
    """Return the outputs of all steps, with 0 after the end of a sequence."""
    directions = len(outputs)
    zero = const(0, layer.data.dtype)
    lengths = layer.sequence_lens

    def element(*index: Expr) -> Expr:
        if not layer.steps:
            return zero
        *places, j = index
        t, direction, b = places if layer.layout == 0 else (*places[1:], places[0])

        def of_direction(d: int) -> Expr:
            return _choose(t, 0, layer.steps, lambda step: outputs[d][step][b, j])

        found = _choose(direction, 0, directions, of_direction)
        if lengths is None:
            return found
        is_active = t.astype(I64) < lengths[b].astype(I64)
        return maths.select(is_active, found, zero)

    shape: tuple[Extent, ...] = (layer.steps, directions, layer.batch, layer.hidden)
    if layer.layout == 1:
        shape = (layer.batch, layer.steps, directions, layer.hidden)
    return compute(shape, element, name=layer.operator, tag=INJECTIVE)


def _join_directions(layer: RecurrentLayer, states: Sequence[ReadState]) -> Tensor:
    """Return the last states of all directions."""
    directions = len(states)

    def element(*index: Expr) -> Expr:
        first, second, j = index
        direction, b = (first, second) if layer.layout == 0 else (second, first)
        found = _choose(direction, 0, directions, lambda d: states[d](b, j))
        return found.astype(layer.data.dtype)

    shape: tuple[Extent, ...] = (directions, layer.batch, layer.hidden)
    if layer.layout == 1:
        shape = (layer.batch, directions, layer.hidden)
    return compute(shape, element, name="last_state", tag=INJECTIVE)


# Meanings.


def run_layer_numpy(
    advance: Callable[..., Sequence[Array]],
    activations: Sequence[CellActivations],
    data: Array,
    parameters: Sequence[Array],
    hidden: int,
    sequence_lens: Array | None,
    initial: Sequence[Array | None],
    direction: str,
    layout: int,
) -> list[Array]:
    """Return the results of a layer, computed sample by sample.

    The states have `hidden` units. `advance` returns the next states. Its arguments are the
    activations of a direction, an input, the states and the parameters of the direction, all in
    f64.
    """
    sequences = widen(data) if layout == 1 else widen(data).swapaxes(0, 1)
    batch, steps, _ = sequences.shape
    backwards = DIRECTIONS[direction]
    # Computes have constants in the dtype of their sums.
    gates = [one.rounded(lambda value: rounded(value, data)) for one in activations]
    y = np.zeros((batch, steps, len(backwards), hidden))
    last = [np.zeros((batch, len(backwards), hidden)) for _ in initial]
    for state, given in zip(last, initial, strict=True):
        if given is not None:
            state[...] = given if layout == 1 else given.swapaxes(0, 1)
    for b, d in np.ndindex(batch, len(backwards)):
        length = steps if sequence_lens is None else int(sequence_lens[b])
        order = range(steps)[: max(0, length)]
        weights = [widen(parameter[d]) for parameter in parameters]
        states: Sequence[Array] = [state[b, d] for state in last]
        for t in reversed(order) if backwards[d] else order:
            states = advance(gates[d], sequences[b, t], *states, *weights)
            y[b, t, d] = states[0]
        for state, value in zip(last, states, strict=True):
            state[b, d] = value
    if layout == 0:
        y = y.transpose(1, 2, 0, 3)
        last = [state.swapaxes(0, 1) for state in last]
    return [np.asarray(array, data.dtype) for array in (y, *last)]


def or_zeros(array: Array | None, shape: tuple[int, ...]) -> Array:
    """Return the array, or zeros of `shape` if it is left out."""
    return np.zeros(shape) if array is None else array


# Samples.


@dataclass(frozen=True, slots=True)
class DrawnLayer:
    """Operands of a layer for a sample, without the states."""

    operands: tuple[Array | None, ...]
    attributes: dict[str, object]
    state_shape: tuple[int, ...]
    directions: int
    hidden: int
    dtype: str


def sample_layer(draws: Draws, gates: int) -> DrawnLayer:
    """Return random operands: data, weight, recurrence, bias, sequence_lens."""
    direction = draws.choice(tuple(DIRECTIONS))
    layout = draws.integer(0, 1)
    count = len(DIRECTIONS[direction])
    steps = draws.integer(0 if draws.integer(0, 9) == 0 else 1, 3)
    batch = draws.integer(0 if draws.integer(0, 9) == 0 else 1, 2)
    inputs = draws.integer(1, 2)
    hidden = draws.integer(1, 2)
    rows = gates * hidden
    dtype = draws.float_dtype()
    first = (steps, batch) if layout == 0 else (batch, steps)
    operands = (
        draws.array((*first, inputs), dtype),
        draws.uniform((count, rows, inputs), -1, 1, dtype),
        draws.uniform((count, rows, hidden), -1, 1, dtype),
        draws.uniform((count, 2 * rows), -1, 1, dtype) if draws.flag() else None,
        draws.integers((batch,), -1, steps + 1) if draws.flag() else None,
    )
    state = (count, batch, hidden) if layout == 0 else (batch, count, hidden)
    attributes = {"direction": direction, "layout": layout}
    return DrawnLayer(operands, attributes, state, count, hidden, dtype)
