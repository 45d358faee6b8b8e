"""The plain recurrent cell, and its layer.

    h' = activation(W x + Wb + R h + Rb)

Reference: J. L. Elman, "Finding Structure in Time", Cognitive Science 14, 1990; ONNX RNN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.normalization.moments import rounded
from refcomp.topi.operator import meaning_of
from refcomp.topi.recurrent.activations import (
    ACTIVATIONS,
    read_activations,
    sample_activations,
)
from refcomp.topi.recurrent.cells import make_cell, sample_cell
from refcomp.topi.recurrent.sequences import (
    make_layer,
    or_zeros,
    run_layer,
    run_layer_numpy,
    sample_layer,
)
from refcomp.topi.recurrent.steps import rnn_step, rnn_step_numpy
from refcomp.topi.shapes import Array, widen


def rnn_cell(
    data: Tensor,
    hidden: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str = "tanh",
) -> Tensor:
    """Return the state of a plain recurrent cell after one step.

        h' = activation(W x + Wb + R h + Rb)

    Sums are formed in at least f32. NaN propagates within its sample.

    Args:
        data: floats [batch, inputs], the x of each sample.
        hidden: [batch, hidden], the state h, of the dtype of `data`, as are all others.
        weight: [hidden, inputs], the matrix W.
        recurrence: [hidden, hidden], the matrix R.
        bias: [2 * hidden], first Wb, then Rb; left out, both are 0.
        activation: one of affine, elu, hard_sigmoid, leaky_relu, relu, scaled_tanh, sigmoid,
            softplus, softsign, tanh and thresholded_relu, with the parameters that ONNX gives them.

    Returns:
        A tensor of the shape and dtype of `hidden`.

    Raises:
        UserError: `data` does not hold floats, a rank, extent or dtype does not fit, or the
            activation is unknown.

    Reference: PyTorch, torch.nn.RNNCell; ONNX RNN.

    Example::

        >>> X, H = rc.placeholder((1, 1), name="X"), rc.placeholder((1, 1), name="H")
        >>> Y = rc.topi.rnn_cell(X, H, X, H, activation="relu")
        >>> one = np.ones((1, 1), "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: 3 * one, H: one}))
        [[10.]]
    """
    (activations,) = read_activations("rnn_cell", activation, 1)
    step = make_cell(
        "rnn_cell",
        1,
        data,
        weight,
        recurrence,
        bias,
        states={"hidden": hidden},
        activations=activations,
    )
    return rnn_step(step, step.read(hidden))


def _sample_rnn_cell(draws: Draws) -> Sample:
    operands, _, _ = sample_cell(draws, 1, 1)
    return Sample(tuple(operands), {"activation": draws.choice(tuple(ACTIVATIONS))})


@meaning_of(rnn_cell, sample=_sample_rnn_cell)
def rnn_cell_numpy(
    data: Array,
    hidden: Array,
    weight: Array,
    recurrence: Array,
    bias: Array | None = None,
    *,
    activation: str = "tanh",
) -> Array:
    bias = or_zeros(bias, (2 * hidden.shape[1],))
    operands = (widen(a) for a in (data, hidden, weight, recurrence, bias))
    (given,) = read_activations("rnn_cell", activation, 1)
    activations = given.rounded(lambda value: rounded(value, data))
    return np.asarray(rnn_step_numpy(activations, *operands), hidden.dtype)


def rnn(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    activation: str = "tanh",
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    clip: float = 0.0,
) -> list[Tensor]:
    """Return the outputs of a layer of plain recurrent cells, and its last states.

        h' = activation(W x + Wb + R h + Rb)

    There are d directions: 2 if the layer is bidirectional, else 1. The steps are unrolled. Sums
    are formed in at least f32. NaN propagates to all later steps of its sample.

    Args:
        data: floats [steps, batch, inputs], or [batch, steps, inputs] in layout 1. The number of
            steps is constant.
        weight: [d, hidden, inputs], the matrices W, of the dtype of `data`, as are all others.
        recurrence: [d, hidden, hidden], the matrices R.
        bias: [d, 2 * hidden], first Wb, then Rb; left out, both are 0.
        sequence_lens: integers [batch], the number of steps of each sample; left out, all steps.
            Numbers below 0 mean 0, greater numbers than `steps` mean all. After the end, outputs
            are 0 and the state is kept.
        initial_h: [d, batch, hidden], or [batch, d, hidden] in layout 1; left out, it is 0.
        direction: forward, reverse or bidirectional.
        layout: 0 if the first axis of `data` is that of the steps, 1 if it is the batch.
        activation: the activation. They are affine, elu, hard_sigmoid,
            leaky_relu, relu, scaled_tanh, sigmoid, softplus, softsign, tanh and thresholded_relu,
            with commas between them. If two directions differ, those of the second follow.
        alphas: the first parameter of each activation; left out, the default in ONNX.
        betas: the second parameter of each activation; likewise.
        clip: the greatest absolute value of an input of an activation; 0 for no limit.

    Returns:
        Two tensors of the dtype of `data`: all outputs [steps, d, batch, hidden], and the last
        states [d, batch, hidden]. In layout 1, [batch, steps, d, hidden] and [batch, d, hidden].

    Raises:
        UserError: `data` does not hold floats, a rank, extent or dtype does not fit, or the
            direction, the layout or an activation is unknown, there is not a parameter for each
            activation, or the limit is negative.

    Reference: ONNX RNN.

    Example::

        >>> X = rc.placeholder((2, 1, 1), name="X")
        >>> W, R = rc.placeholder((1, 1, 1), name="W"), rc.placeholder((1, 1, 1), name="R")
        >>> outputs = rc.topi.rnn(X, W, R, activation="relu")
        >>> x, one = np.array([[[3]], [[4]]], "float32"), np.ones((1, 1, 1), "float32")
        >>> y, last = rc.oracle.evaluate(outputs, {X: x, W: one, R: one})
        >>> y.ravel().tolist(), last.ravel().tolist()
        ([3.0, 7.0], [7.0])
    """
    layer = make_layer(
        "rnn",
        1,
        data,
        weight,
        recurrence,
        bias,
        sequence_lens,
        initial=(initial_h,),
        direction=direction,
        layout=layout,
        activations=lambda count: read_activations(
            "rnn", activation, 1, count, alphas=alphas, betas=betas, limit=clip
        ),
    )
    return run_layer(layer, lambda step, states: [rnn_step(step, states[0])])


def _sample_rnn(draws: Draws) -> Sample:
    drawn = sample_layer(draws, 1)
    initial = draws.array(drawn.state_shape, drawn.dtype) if draws.flag() else None
    chosen = sample_activations(draws, "activation", 1, drawn.directions)
    return Sample((*drawn.operands, initial), {**drawn.attributes, **chosen})


@meaning_of(rnn, pattern="opaque", sample=_sample_rnn)
def rnn_numpy(
    data: Array,
    weight: Array,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    activation: str = "tanh",
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    clip: float = 0.0,
) -> list[Array]:
    directions, rows, _ = weight.shape
    bias = or_zeros(bias, (directions, 2 * rows))
    return run_layer_numpy(
        lambda *operands: [rnn_step_numpy(*operands)],
        read_activations(
            "rnn", activation, 1, directions, alphas=alphas, betas=betas, limit=clip
        ),
        data,
        (weight, recurrence, bias),
        recurrence.shape[2],
        sequence_lens,
        (initial_h,),
        direction,
        layout,
    )
