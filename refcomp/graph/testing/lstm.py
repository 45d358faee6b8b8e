"""A layer of long short-term memory, unrolled over its steps.

Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.
"""

from __future__ import annotations

from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray


def _step(gates: Symbol, cell: Symbol, name: str) -> tuple[Symbol, Symbol]:
    """Return the hidden state and the cell after one step."""
    parts = sym.split(gates, indices_or_sections=4, axis=1, name=f"{name}_gates")
    enter = sym.sigmoid(parts[0], name=f"{name}_enter")
    forget = sym.sigmoid(parts[1], name=f"{name}_forget")
    change = sym.tanh(parts[2], name=f"{name}_change")
    leave = sym.sigmoid(parts[3], name=f"{name}_leave")
    kept = sym.elemwise_mul(forget, cell, name=f"{name}_kept")
    added = sym.elemwise_mul(enter, change, name=f"{name}_added")
    cell = sym.elemwise_add(kept, added, name=f"{name}_cell")
    shown = sym.tanh(cell, name=f"{name}_shown")
    return sym.elemwise_mul(leave, shown, name=f"{name}_hidden"), cell


def get_symbol(
    batch_size: int = 1,
    num_hidden: int = 128,
    num_steps: int = 4,
    dtype: str = "float32",
) -> Symbol:
    """Return the layer: data [n, steps, inputs] become the last hidden state [n, hidden].

    All steps share their weights. The gates stand in the order input, forget, cell, output.

    Args:
        batch_size: the number of sequences, n.
        num_hidden: the numbers of a hidden state.
        num_steps: the number of steps.
        dtype: the dtype of the first states, which are 0.

    Source: TVM, relay.testing.lstm.

    Example::

        >>> net = rc.graph.testing.lstm.get_symbol(num_hidden=8, num_steps=2)
        >>> net.infer_shape(data=(1, 2, 4))[1], net.list_input_names()[-1]
        ([(1, 8)], 'h2h_bias')
    """
    names = ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")
    weight, bias, recurrence, recurrent_bias = map(sym.Variable, names)
    shape = (batch_size, num_hidden)
    hidden = sym.zeros(shape=shape, dtype=dtype, name="first_hidden")
    cell = sym.zeros(shape=shape, dtype=dtype, name="first_cell")
    sequence = sym.split(
        sym.Variable("data"), indices_or_sections=num_steps, axis=1, name="steps"
    )
    for number in range(num_steps):
        name = f"step{number}"
        given = sym.squeeze(sequence[number], axis=(1,), name=f"{name}_data")
        entering = sym.dense(
            given, weight, bias, units=4 * num_hidden, name=f"{name}_i2h"
        )
        returning = sym.dense(
            hidden, recurrence, recurrent_bias, units=4 * num_hidden, name=f"{name}_h2h"
        )
        gates = sym.elemwise_add(entering, returning, name=f"{name}_sum")
        hidden, cell = _step(gates, cell, name)
    return hidden


def get_workload(
    batch_size: int = 1,
    num_hidden: int = 128,
    num_steps: int = 4,
    num_inputs: int = 128,
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return the layer and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(batch_size, num_hidden, num_steps, dtype)
    return create_workload(net, batch_size, (num_steps, num_inputs), dtype, seed=seed)
