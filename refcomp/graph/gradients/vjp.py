"""The operator `vjp`: the vector-Jacobian product of any operator that te can differentiate.

    y = gelu(x) {approximate="tanh"}
    x_grad = vjp(y_grad, x) {approximate="tanh", of="gelu", wrt=[0]}

A node has the adjoint of one output of the operator, then all inputs of the operator. Its
attributes are `of`, `output` and `wrt`, and beside these the attributes of the operator itself.
`te.gradient` of the operator's compute makes its te. Its numpy meaning is that te, evaluated by the
oracle on arrays of the given shapes.

`stop_gradient` is an identity that no adjoint passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.te.gradients.gradient import gradient
from refcomp.te.operation import compute, placeholder, reachable_operations
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import (
    Attribute,
    AttributeSpec,
    Operator,
    find_operator,
    register_operator,
)
from refcomp.topi.shapes import Array

VJP = "vjp"
STOP_GRADIENT = "stop_gradient"

# All other attributes of a node belong to the operator that is differentiated.
_OWN = (
    AttributeSpec("of", (str,), required=True),
    AttributeSpec("wrt", (tuple,), required=True),
    AttributeSpec("output", (int,), 0),
)


class _VjpOperator(Operator):
    """An operator whose attributes include those of the operator named by `of`."""

    def check_attributes(
        self,
        attributes: Mapping[str, Attribute],
        given_later: Collection[str] = (),
    ) -> None:
        own = {spec.name for spec in _OWN}
        Operator.check_attributes(
            self, {k: v for k, v in attributes.items() if k in own}, given_later
        )
        of = find_operator(str(attributes["of"]))
        of.check_attributes({k: v for k, v in attributes.items() if k not in own})


def vjp(
    head: Tensor,
    *tensors: Tensor | None,
    of: str,
    wrt: Sequence[int],
    output: int = 0,
    **attributes: Attribute,
) -> list[Tensor]:
    """Return the gradients of an output of an operator, weighted by a head, by some inputs.

        result[k] = sum over all i of head[i] * (derivative of output[i] by input wrt[k])

    Kinks have the slopes that `te.gradient` takes. An input that the output does not depend on has
    the gradient 0.

    Args:
        head: the adjoint of the output: of its dtype and shape.
        *tensors: the inputs of the operator; None for one that is left out.
        of: the name of the operator.
        wrt: the positions of the inputs, counted from 0. They hold floats.
        output: the number of the output, counted from 0.
        **attributes: the attributes of the operator.

    Returns:
        For each position of `wrt` a tensor of the dtype and shape of that input.

    Raises:
        UserError: the operator does not take these inputs, has no such output, or `wrt` names an
            input that is left out or holds no floats. Or the head does not fit the output.
        Unsupported: te cannot differentiate the operator.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x, g = builder.input("x", "float32", (2,)), builder.input("g", "float32", (2,))
        >>> y = builder.node("vjp", [g, x], {"of": "square", "wrt": (0,)})
        >>> feeds = {"x": np.array([3, 4], "float32"), "g": np.array([1, 10], "float32")}
        >>> print(*rc.graph.evaluate_graph(builder.finish([y]), feeds))
        [ 6. 80.]
    """
    operator = find_operator(of)
    operator.check_inputs(tensors)
    _check_positions(wrt, tensors, of)
    given = _apart(tensors)
    made = operator.compute(*given, **attributes)
    outputs = made if isinstance(made, list) else [made]
    if not 0 <= output < len(outputs):
        raise UserError(
            f"{of} has no output {output}",
            remedy=f"give a number of 0 to {len(outputs) - 1}",
        )
    target = outputs[output]
    if head.ndim != target.ndim:
        raise UserError(
            f"the head of vjp has rank {head.ndim}, but the output of {of} rank {target.ndim}",
            remedy="give a head of the output's dtype and shape",
            earlier=[head.declaration()],
        )
    wanted = [given[place] for place in wrt]
    return _gradients(target, [w for w in wanted if w is not None], head)


def _check_positions(
    wrt: Sequence[int], tensors: Sequence[Tensor | None], of: str
) -> None:
    if not wrt or len(set(wrt)) < len(wrt):
        raise UserError(
            f"vjp of {of} by the inputs {list(wrt)}",
            remedy="give each position once, and at least one",
        )
    for place in wrt:
        tensor = tensors[place] if 0 <= place < len(tensors) else None
        if tensor is None:
            raise UserError(
                f"vjp of {of} has no input {place}",
                remedy="let `wrt` hold positions of inputs that are given, from 0",
            )
        if not tensor.dtype.is_float:
            raise UserError(
                f"input {place} of {of} has no gradient, since it holds {tensor.dtype}",
                remedy="take gradients by floats",
                earlier=[tensor.declaration()],
            )


def _apart(tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return different tensors: a repeated one is copied, so that its reads stay apart."""
    counts = Counter(tensor for tensor in tensors if tensor is not None)
    return [
        _copy(tensor) if tensor is not None and counts[tensor] > 1 else tensor
        for tensor in tensors
    ]


def _copy(tensor: Tensor) -> Tensor:
    return compute(
        tensor.shape,
        lambda *index: tensor[index],
        name=f"{tensor.name}_copy",
        tag=INJECTIVE,
    )


def _gradients(output: Tensor, wanted: Sequence[Tensor], head: Tensor) -> list[Tensor]:
    needed = reachable_operations([output.op])
    reached = [tensor for tensor in wanted if tensor.op in needed]
    found = gradient(output, reached, head) if reached else []
    by_tensor = dict(zip(reached, found, strict=True))
    results = []
    for tensor in wanted:
        result = by_tensor.get(tensor)
        if result is None:
            result = _zeros(tensor)
        # A kernel may not return its argument, nor one tensor twice.
        results.append(_copy(result) if result is head or result in results else result)
    return results


def _zeros(tensor: Tensor) -> Tensor:
    zeros = find_operator("zeros_like").compute(tensor)
    assert isinstance(zeros, Tensor)
    return zeros


def vjp_numpy(
    head: Array,
    *arrays: Array | None,
    of: str,
    wrt: Sequence[int],
    output: int = 0,
    **attributes: Attribute,
) -> list[Array]:
    """Return the elements of the te of `vjp`, as the oracle evaluates them."""
    # Here, since graphs without such nodes do not need the oracle.
    from refcomp.oracle import evaluate  # noqa: PLC0415

    given = [head, *arrays]
    tensors = [
        None if a is None else placeholder(a.shape, a.dtype, name=f"p{k}")
        for k, a in enumerate(given)
    ]
    first = tensors[0]
    assert first is not None
    results = vjp(first, *tensors[1:], of=of, wrt=wrt, output=output, **attributes)
    feeds = {}
    for tensor, array in zip(tensors, given, strict=True):
        if tensor is not None and array is not None:
            feeds[tensor] = array
    return [np.asarray(found) for found in evaluate(results, feeds)]


# Operators of all families, whose operands are floats only.
_SAMPLED = (
    "gelu",
    "prelu",
    "logaddexp",
    "cumsum",
    "tile",
    "conv1d",
    "lp_pool2d",
    "rms_norm",
    "rnn_cell",
    "huber_loss",
)


def _sample_vjp(draws: Draws) -> Sample:
    operator = find_operator(draws.choice(_SAMPLED))
    assert operator.sample is not None
    sample = operator.sample(draws)
    made = operator.numpy(*sample.operands, **sample.attributes)
    assert isinstance(made, np.ndarray | np.generic)
    head = draws.array(made.shape, made.dtype.name)
    given = enumerate(sample.operands)
    wrt = tuple(place for place, a in given if a is not None and a.dtype.kind == "f")
    attributes = {**sample.attributes, "of": operator.name, "wrt": wrt}
    return Sample((head, *sample.operands), attributes)


register_operator(
    _VjpOperator(
        VJP,
        inputs=("head", "tensors"),
        attributes=_OWN,
        required=1,
        variadic=True,
        compute=vjp,
        numpy=vjp_numpy,
        # te.gradient would go on into a node that makes an input, if one kernel held both.
        pattern="opaque",
        sample=_sample_vjp,
    )
)


def stop_gradient(data: Tensor) -> Tensor:
    """Return `data`, as a value that no gradient passes: it counts as a constant.

    Args:
        data: a tensor of any dtype and shape.

    Returns:
        A tensor of the same elements.

    Source: TensorFlow, tf.stop_gradient; MXNet, BlockGrad.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ())
        >>> y = builder.node("multiply", [x, builder.node("stop_gradient", [x])])
        >>> net = rc.graph.gradient(builder.finish([y]))
        >>> y, slope = rc.graph.evaluate_graph(net, {"x": np.float32(3)})
        >>> print(y, slope)
        9.0 3.0
    """
    return _copy(data)


def stop_gradient_numpy(data: Array) -> Array:
    """Return a copy of the array."""
    return data.copy()


def _sample_stop_gradient(draws: Draws) -> Sample:
    return Sample((draws.array(draws.shape(), draws.number_dtype()),))


register_operator(
    Operator(
        STOP_GRADIENT,
        inputs=("data",),
        compute=stop_gradient,
        numpy=stop_gradient_numpy,
        pattern="elementwise",
        sample=_sample_stop_gradient,
    )
)
