"""The gated recurrent unit, and its layer.

    z = sigmoid(Wz x + Wbz + Rz h + Rbz)                     update
    r = sigmoid(Wr x + Wbr + Rr h + Rbr)                     reset
    n = tanh(Wn x + Wbn + Rn (r * h) + Rbn)                  candidate
    n = tanh(Wn x + Wbn + r * (Rn h + Rbn))                  the same, with linear_before_reset
    h' = (1 - z) * n + z * h

Reference: K. Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014; ONNX
GRU.
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
from refcomp.topi.recurrent.steps import gru_step, gru_step_numpy
from refcomp.topi.shapes import Array, widen

_GATES = 3
_ACTIVATIONS = "sigmoid,tanh"


def gru_cell(
    data: Tensor,
    hidden: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    *,
    linear_before_reset: bool = False,
) -> Tensor:
    """Return the state of a gated recurrent unit after one step.

        z = sigmoid(Wz x + Wbz + Rz h + Rbz)
        r = sigmoid(Wr x + Wbr + Rr h + Rbr)
        n = tanh(Wn x + Wbn + Rn (r * h) + Rbn)
        h' = (1 - z) * n + z * h

    Sums are formed in at least f32. NaN propagates within its sample.

    Args:
        data: floats [batch, inputs], the x of each sample.
        hidden: [batch, hidden], the state h, of the dtype of `data`, as are all others.
        weight: [3 * hidden, inputs], the rows of Wz, Wr and Wn.
        recurrence: [3 * hidden, hidden], the rows of Rz, Rr and Rn.
        bias: [6 * hidden]: Wbz, Wbr, Wbn, Rbz, Rbr, Rbn; left out, all are 0.
        linear_before_reset: True for n = tanh(Wn x + Wbn + r * (Rn h + Rbn)), as in PyTorch.

    Returns:
        A tensor of the shape and dtype of `hidden`.

    Raises:
        UserError: `data` does not hold floats, or a rank, extent or dtype does not fit.

    Reference: PyTorch, torch.nn.GRUCell, whose gates are in the order r, z, n; ONNX GRU.

    Example::

        >>> X, H = rc.placeholder((1, 1), name="X"), rc.placeholder((1, 1), name="H")
        >>> W, R = rc.placeholder((3, 1), name="W"), rc.placeholder((3, 1), name="R")
        >>> Y = rc.topi.gru_cell(X, H, W, R)
        >>> one, zero = np.ones((1, 1), "float32"), np.zeros((3, 1), "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: one, H: one, W: zero, R: zero}))
        [[0.5]]
    """
    (activations,) = read_activations("gru_cell", _ACTIVATIONS, 2)
    step = make_cell(
        "gru_cell",
        _GATES,
        data,
        weight,
        recurrence,
        bias,
        states={"hidden": hidden},
        activations=activations,
    )
    return gru_step(step, step.read(hidden), linear_before_reset)


def _sample_gru_cell(draws: Draws) -> Sample:
    operands, _, _ = sample_cell(draws, _GATES, 1)
    return Sample(tuple(operands), {"linear_before_reset": draws.flag()})


@meaning_of(gru_cell, sample=_sample_gru_cell)
def gru_cell_numpy(
    data: Array,
    hidden: Array,
    weight: Array,
    recurrence: Array,
    bias: Array | None = None,
    *,
    linear_before_reset: bool = False,
) -> Array:
    bias = or_zeros(bias, (2 * _GATES * hidden.shape[1],))
    operands = (widen(a) for a in (data, hidden, weight, recurrence, bias))
    (activations,) = read_activations("gru_cell", _ACTIVATIONS, 2)
    result = gru_step_numpy(activations, linear_before_reset, *operands)
    return np.asarray(result, hidden.dtype)


def gru(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    linear_before_reset: bool = False,
    activations: str = "sigmoid,tanh",
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    clip: float = 0.0,
) -> list[Tensor]:
    """Return the outputs of a layer of gated recurrent units, and its last states.

        z = sigmoid(Wz x + Wbz + Rz h + Rbz)
        r = sigmoid(Wr x + Wbr + Rr h + Rbr)
        n = tanh(Wn x + Wbn + Rn (r * h) + Rbn)
        h' = (1 - z) * n + z * h

    There are d directions: 2 if the layer is bidirectional, else 1. The steps are unrolled. Sums
    are formed in at least f32. NaN propagates to all later steps of its sample.

    Args:
        data: floats [steps, batch, inputs], or [batch, steps, inputs] in layout 1. The number of
            steps is constant.
        weight: [d, 3 * hidden, inputs], the rows of Wz, Wr and Wn, of the dtype of `data`, as are
            all others.
        recurrence: [d, 3 * hidden, hidden], the rows of Rz, Rr and Rn.
        bias: [d, 6 * hidden]: Wbz, Wbr, Wbn, Rbz, Rbr, Rbn; left out, all are 0.
        sequence_lens: integers [batch], the number of steps of each sample; left out, all steps.
            Numbers below 0 mean 0, greater numbers than `steps` mean all. After the end, outputs
            are 0 and the state is kept.
        initial_h: [d, batch, hidden], or [batch, d, hidden] in layout 1; left out, it is 0.
        direction: forward, reverse or bidirectional.
        layout: 0 if the first axis of `data` is that of the steps, 1 if it is the batch.
        linear_before_reset: True for n = tanh(Wn x + Wbn + r * (Rn h + Rbn)).
        activations: that of z and r, and that of n. They are affine, elu, hard_sigmoid,
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

    Reference: ONNX GRU.

    Example::

        >>> X, H = rc.placeholder((2, 1, 1), name="X"), rc.placeholder((1, 1, 1), name="H")
        >>> W, R = rc.placeholder((1, 3, 1), name="W"), rc.placeholder((1, 3, 1), name="R")
        >>> y, last = rc.topi.gru(X, W, R, initial_h=H)
        >>> x, one = np.ones((2, 1, 1), "float32"), np.ones((1, 1, 1), "float32")
        >>> zero = np.zeros((1, 3, 1), "float32")
        >>> rc.oracle.evaluate([y], {X: x, H: 8 * one, W: zero, R: zero})[0].ravel().tolist()
        [4.0, 2.0]
    """
    layer = make_layer(
        "gru",
        _GATES,
        data,
        weight,
        recurrence,
        bias,
        sequence_lens,
        initial=(initial_h,),
        direction=direction,
        layout=layout,
        activations=lambda count: read_activations(
            "gru", activations, 2, count, alphas=alphas, betas=betas, limit=clip
        ),
    )
    return run_layer(
        layer, lambda step, states: [gru_step(step, states[0], linear_before_reset)]
    )


def _sample_gru(draws: Draws) -> Sample:
    drawn = sample_layer(draws, _GATES)
    initial = draws.array(drawn.state_shape, drawn.dtype) if draws.flag() else None
    chosen = sample_activations(draws, "activations", 2, drawn.directions)
    attributes = {**drawn.attributes, **chosen, "linear_before_reset": draws.flag()}
    return Sample((*drawn.operands, initial), attributes)


@meaning_of(gru, pattern="opaque", sample=_sample_gru)
def gru_numpy(
    data: Array,
    weight: Array,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    linear_before_reset: bool = False,
    activations: str = "sigmoid,tanh",
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    clip: float = 0.0,
) -> list[Array]:
    directions, rows, _ = weight.shape
    bias = or_zeros(bias, (directions, 2 * rows))
    return run_layer_numpy(
        lambda chosen, *operands: [
            gru_step_numpy(chosen, linear_before_reset, *operands)
        ],
        read_activations(
            "gru", activations, 2, directions, alphas=alphas, betas=betas, limit=clip
        ),
        data,
        (weight, recurrence, bias),
        recurrence.shape[2],
        sequence_lens,
        (initial_h,),
        direction,
        layout,
    )
