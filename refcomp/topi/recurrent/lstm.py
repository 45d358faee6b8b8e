"""The long short-term memory, and its layer.

    i = sigmoid(Wi x + Wbi + Ri h + Rbi + Pi * c)            input gate
    f = sigmoid(Wf x + Wbf + Rf h + Rbf + Pf * c)            forget gate
    g = tanh(Wg x + Wbg + Rg h + Rbg)                        candidate
    c' = f * c + i * g
    o = sigmoid(Wo x + Wbo + Ro h + Rbo + Po * c')           output gate
    h' = o * tanh(c')

Reference: S. Hochreiter, J. Schmidhuber, "Long Short-Term Memory", 1997; F. A. Gers, J.
Schmidhuber, "Recurrent Nets that Time and Count", 2000 (peepholes); ONNX LSTM.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.recurrent.activations import read_activations, sample_activations
from refcomp.topi.recurrent.cells import make_cell, sample_cell
from refcomp.topi.recurrent.sequences import (
    make_layer,
    or_zeros,
    run_layer,
    run_layer_numpy,
    sample_layer,
)
from refcomp.topi.recurrent.steps import lstm_step, lstm_step_numpy
from refcomp.topi.shapes import Array, widen

_GATES = 4
_ACTIVATIONS = "sigmoid,tanh,tanh"


def lstm_cell(
    data: Tensor,
    hidden: Tensor,
    cell: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    peephole: Tensor | None = None,
) -> list[Tensor]:
    """Return both states of a long short-term memory after one step.

        i = sigmoid(Wi x + Wbi + Ri h + Rbi + Pi * c)
        f = sigmoid(Wf x + Wbf + Rf h + Rbf + Pf * c)
        g = tanh(Wg x + Wbg + Rg h + Rbg)
        c' = f * c + i * g
        o = sigmoid(Wo x + Wbo + Ro h + Rbo + Po * c')
        h' = o * tanh(c')

    Sums are formed in at least f32. NaN propagates within its sample.

    Args:
        data: floats [batch, inputs], the x of each sample.
        hidden: [batch, hidden], the state h, of the dtype of `data`, as are all others.
        cell: [batch, hidden], the state c.
        weight: [4 * hidden, inputs], the rows of Wi, Wo, Wf and Wg.
        recurrence: [4 * hidden, hidden], the rows of Ri, Ro, Rf and Rg.
        bias: [8 * hidden]: Wbi, Wbo, Wbf, Wbg, Rbi, Rbo, Rbf, Rbg; left out, all are 0.
        peephole: [3 * hidden]: Pi, Po, Pf; left out, all are 0.

    Returns:
        The states h' and c', each of the shape and dtype of `hidden`.

    Raises:
        UserError: `data` does not hold floats, or a rank, extent or dtype does not fit.

    Reference: PyTorch, torch.nn.LSTMCell, whose gates are in the order i, f, g, o; ONNX LSTM.

    Example::

        >>> X, H, C = (rc.placeholder((1, 1), name=name) for name in "XHC")
        >>> W, R = rc.placeholder((4, 1), name="W"), rc.placeholder((4, 1), name="R")
        >>> outputs = rc.topi.lstm_cell(X, H, C, W, R)
        >>> one, zero = np.ones((1, 1), "float32"), np.zeros((4, 1), "float32")
        >>> h, c = rc.oracle.evaluate(outputs, {X: one, H: one, C: 2 * one, W: zero, R: zero})
        >>> print(h.round(4), c)
        [[0.3808]] [[1.]]
    """
    (activations,) = read_activations("lstm_cell", _ACTIVATIONS, 3)
    step = make_cell(
        "lstm_cell",
        _GATES,
        data,
        weight,
        recurrence,
        bias,
        states={"hidden": hidden, "cell": cell},
        activations=activations,
        peephole=peephole,
    )
    return list(lstm_step(step, step.read(hidden), step.read(cell)))


def _sample_lstm_cell(draws: Draws) -> Sample:
    operands, hidden, dtype = sample_cell(draws, _GATES, 2)
    peephole = draws.uniform((3 * hidden,), -1, 1, dtype) if draws.flag() else None
    return Sample((*operands, peephole))


@meaning_of(lstm_cell, pattern="opaque", sample=_sample_lstm_cell)
def lstm_cell_numpy(
    data: Array,
    hidden: Array,
    cell: Array,
    weight: Array,
    recurrence: Array,
    bias: Array | None = None,
    peephole: Array | None = None,
) -> list[Array]:
    size = hidden.shape[1]
    bias = or_zeros(bias, (2 * _GATES * size,))
    given = [data, hidden, cell, weight, recurrence, bias]
    if peephole is not None:
        given.append(peephole)
    (activations,) = read_activations("lstm_cell", _ACTIVATIONS, 3)
    states = lstm_step_numpy(activations, False, *(widen(array) for array in given))
    return [np.asarray(state, hidden.dtype) for state in states]


def lstm(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    peephole: Tensor | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    activations: str = "sigmoid,tanh,tanh",
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    clip: float = 0.0,
    input_forget: bool = False,
) -> list[Tensor]:
    """Return the outputs of a layer of long short-term memories, and its last states.

        i = sigmoid(Wi x + Wbi + Ri h + Rbi + Pi * c)
        f = sigmoid(Wf x + Wbf + Rf h + Rbf + Pf * c)
        g = tanh(Wg x + Wbg + Rg h + Rbg)
        c' = f * c + i * g
        o = sigmoid(Wo x + Wbo + Ro h + Rbo + Po * c')
        h' = o * tanh(c')

    There are d directions: 2 if the layer is bidirectional, else 1. The steps are unrolled. Sums
    are formed in at least f32. NaN propagates to all later steps of its sample.

    Args:
        data: floats [steps, batch, inputs], or [batch, steps, inputs] in layout 1. The number of
            steps is constant.
        weight: [d, 4 * hidden, inputs], the rows of Wi, Wo, Wf and Wg, of the dtype of `data`, as
            are all others.
        recurrence: [d, 4 * hidden, hidden], the rows of Ri, Ro, Rf and Rg.
        bias: [d, 8 * hidden]: Wbi, Wbo, Wbf, Wbg, Rbi, Rbo, Rbf, Rbg; left out, all are 0.
        sequence_lens: integers [batch], the number of steps of each sample; left out, all steps.
            Numbers below 0 mean 0, greater numbers than `steps` mean all. After the end, outputs
            are 0 and the states are kept.
        initial_h: [d, batch, hidden], or [batch, d, hidden] in layout 1; left out, it is 0.
        initial_c: the state c before the first step, of the shape of `initial_h`.
        peephole: [d, 3 * hidden]: Pi, Po, Pf; left out, all are 0.
        direction: forward, reverse or bidirectional.
        layout: 0 if the first axis of `data` is that of the steps, 1 if it is the batch.
        activations: those of gates, of g, and of c'. They are affine, elu, hard_sigmoid,
            leaky_relu, relu, scaled_tanh, sigmoid, softplus, softsign, tanh and thresholded_relu,
            with commas between them. If two directions differ, those of the second follow.
        alphas: the first parameter of each activation; left out, the default in ONNX.
        betas: the second parameter of each activation; likewise.
        clip: the greatest absolute value of an input of an activation; 0 for no limit.
        input_forget: True for f = 1 - i.

    Returns:
        Three tensors of the dtype of `data`: all outputs [steps, d, batch, hidden], and the last
        states h and c, each [d, batch, hidden]. In layout 1, [batch, steps, d, hidden] and twice
        [batch, d, hidden].

    Raises:
        UserError: `data` does not hold floats, a rank, extent or dtype does not fit, or the
            direction, the layout or an activation is unknown, there is not a parameter for each
            activation, or the limit is negative.

    Reference: ONNX LSTM; PyTorch, torch.nn.LSTM, whose gates are in the order i, f, g, o.

    Example::

        >>> X, C = rc.placeholder((2, 1, 1), name="X"), rc.placeholder((1, 1, 1), name="C")
        >>> W, R = rc.placeholder((1, 4, 1), name="W"), rc.placeholder((1, 4, 1), name="R")
        >>> y, h, c = rc.topi.lstm(X, W, R, initial_c=C)
        >>> x, one = np.ones((2, 1, 1), "float32"), np.ones((1, 1, 1), "float32")
        >>> zero = np.zeros((1, 4, 1), "float32")
        >>> print(*rc.oracle.evaluate([c], {X: x, C: 8 * one, W: zero, R: zero}))
        [[[2.]]]
    """
    layer = make_layer(
        "lstm",
        _GATES,
        data,
        weight,
        recurrence,
        bias,
        sequence_lens,
        initial=(initial_h, initial_c),
        direction=direction,
        layout=layout,
        activations=lambda count: read_activations(
            "lstm", activations, 3, count, alphas=alphas, betas=betas, limit=clip
        ),
        peephole=peephole,
    )
    return run_layer(
        layer,
        lambda step, states: lstm_step(
            step, states[0], states[1], input_forget=input_forget
        ),
    )


def _sample_lstm(draws: Draws) -> Sample:
    drawn = sample_layer(draws, _GATES)
    states = [
        draws.array(drawn.state_shape, drawn.dtype) if draws.flag() else None
        for _ in range(2)
    ]
    shape = (drawn.directions, 3 * drawn.hidden)
    peephole = draws.uniform(shape, -1, 1, drawn.dtype) if draws.flag() else None
    chosen = sample_activations(draws, "activations", 3, drawn.directions)
    attributes = {**drawn.attributes, **chosen, "input_forget": draws.flag()}
    return Sample((*drawn.operands, *states, peephole), attributes)


@meaning_of(lstm, pattern="opaque", sample=_sample_lstm)
def lstm_numpy(
    data: Array,
    weight: Array,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    peephole: Array | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    activations: str = "sigmoid,tanh,tanh",
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    clip: float = 0.0,
    input_forget: bool = False,
) -> list[Array]:
    directions, rows, _ = weight.shape
    bias = or_zeros(bias, (directions, 2 * rows))
    parameters = [weight, recurrence, bias]
    if peephole is not None:
        parameters.append(peephole)
    return run_layer_numpy(
        lambda chosen, *operands: lstm_step_numpy(chosen, input_forget, *operands),
        read_activations(
            "lstm", activations, 3, directions, alphas=alphas, betas=betas, limit=clip
        ),
        data,
        parameters,
        recurrence.shape[2],
        sequence_lens,
        (initial_h, initial_c),
        direction,
        layout,
    )
