"""Layers of recurrent cells: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.converters.long_sequences import scan_layer
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError
from refcomp.topi.operator import Attribute
from refcomp.topi.recurrent.activations import ACTIVATIONS

# Layers of more steps are not unrolled: compiling takes about 0.2 seconds for each step.
MAX_UNROLLED = 64
_MAX_STEPS = 4096  # of layers that can only be unrolled
# Name in ONNX, in small letters -> (name in refcomp, has alpha, has beta).
_ACTIVATIONS = {
    "affine": ("affine", True, True),
    "elu": ("elu", True, False),
    "hardsigmoid": ("hard_sigmoid", True, True),
    "leakyrelu": ("leaky_relu", True, False),
    "relu": ("relu", False, False),
    "scaledtanh": ("scaled_tanh", True, True),
    "sigmoid": ("sigmoid", False, False),
    "softplus": ("softplus", False, False),
    "softsign": ("softsign", False, False),
    "tanh": ("tanh", False, False),
    "thresholdedrelu": ("thresholded_relu", True, False),
}


@converter("RNN")
def rnn(node: OnnxNode) -> list[Value]:
    """Convert RNN of any version."""
    return _layer(node, "rnn", "activation", ("Tanh",), {})


@converter("GRU")
def gru(node: OnnxNode) -> list[Value]:
    """Convert GRU of any version. In version 1, the reset gate is applied first."""
    is_linear = bool(node.attributes.get("linear_before_reset", 0))
    own: dict[str, Attribute] = {"linear_before_reset": is_linear}
    return _layer(node, "gru", "activations", ("Sigmoid", "Tanh"), own)


@converter("LSTM")
def lstm(node: OnnxNode) -> list[Value]:
    """Convert LSTM of any version."""
    own: dict[str, Attribute] = {
        "input_forget": bool(node.attributes.get("input_forget", 0))
    }
    return _layer(node, "lstm", "activations", ("Sigmoid", "Tanh", "Tanh"), own)


def _layer(
    node: OnnxNode,
    operator: str,
    name: str,
    defaults: Sequence[str],
    own: dict[str, Attribute],
) -> list[Value]:
    """Return the outputs of a layer.

    Args:
        node: the node.
        operator: the operator of refcomp.
        name: its attribute that lists the activations.
        defaults: the activations of a cell.
        own: its other attributes, which other layers do not have.
    """
    attributes = node.attributes
    direction = str(attributes.get("direction", "forward"))
    if direction == "foward":  # the default of GRU-1 in ONNX's schema
        direction = "forward"
    layout = int(attributes.get("layout", 0))
    data = node.required(0)
    _check_hidden_size(node)
    directions = 2 if direction == "bidirectional" else 1
    names = tuple(attributes.get("activations") or (*defaults,) * directions)
    # The default of RNN-1 has names for two directions.
    names = names[: len(defaults) * directions]
    given: dict[str, Attribute] = {
        **own,
        **_activations(name, names, attributes),
        "direction": direction,
        "layout": layout,
        "clip": float(attributes.get("clip", 0.0)),
    }
    operands = [data, node.required(1), node.required(2), *_optional_inputs(node)]
    if _is_scanned(node, data, layout):
        return scan_layer(node, operator, operands, given)
    return list(node.make_all_fitting(operator, operands, **given))


def _is_scanned(node: OnnxNode, data: Value, layout: int) -> bool:
    """Return True for a sequence whose steps are not unrolled.

    Raises:
        NotKnownError: both the number of steps and the batch are symbolic.
        Unsupported: there are too many steps to unroll.
    """
    if len(data.shape) != 3:
        return False  # the operator refuses it
    steps, batch = data.shape[layout == 1], data.shape[layout != 1]
    is_long = not isinstance(steps, int) or steps > MAX_UNROLLED
    if is_long and isinstance(batch, int) and not node.is_in_run:
        return True  # a run adds operators, but no control
    if not isinstance(steps, int):
        raise NotKnownError
    if steps > _MAX_STEPS:
        raise Unsupported(
            f"it has {steps} steps, more than {_MAX_STEPS}, and a symbolic batch",
            remedy="export the model with a fixed batch",
        )
    return False


def _check_hidden_size(node: OnnxNode) -> None:
    """Check hidden_size. Raise NotKnownError for a symbolic number of units."""
    recurrence = node.required(2)
    hidden = recurrence.shape[-1] if recurrence.shape else 0
    if not isinstance(hidden, int):
        raise NotKnownError
    given = node.attributes.get("hidden_size")
    if given is not None and given != hidden:
        raise UserError(
            f"its attribute hidden_size is {given}",
            why=f"its recurrence weights are {recurrence}",
            remedy="leave hidden_size out, or give the last extent of these weights",
        )


def _optional_inputs(node: OnnxNode) -> list[Value | None]:
    """Return the inputs from the bias on, without those at the end that are left out."""
    given = list(node.inputs[3:])
    while given and given[-1] is None:
        given.pop()
    return given


def _activations(
    name: str, names: Sequence[str], attributes: dict[str, object]
) -> dict[str, Attribute]:
    """Return the attributes for activations. Each takes the parameters that it has, in order."""
    alphas = _numbers(attributes, "activation_alpha")
    betas = _numbers(attributes, "activation_beta")
    found: list[str] = []
    firsts: list[float] = []
    seconds: list[float] = []
    for one in names:
        if one.lower() not in _ACTIVATIONS:
            raise UserError(
                f"its activation {one!r} is unknown",
                remedy=advise(
                    one.lower(), _ACTIVATIONS, f"use {', '.join(_ACTIVATIONS)}"
                ),
            )
        own, has_alpha, has_beta = _ACTIVATIONS[one.lower()]
        found.append(own)
        defaults = ACTIVATIONS[own]
        firsts.append(alphas.pop(0) if has_alpha and alphas else defaults.alpha)
        seconds.append(betas.pop(0) if has_beta and betas else defaults.beta)
    return {name: ",".join(found), "alphas": tuple(firsts), "betas": tuple(seconds)}


def _numbers(attributes: dict[str, object], name: str) -> list[float]:
    given = attributes.get(name) or ()
    assert isinstance(given, tuple)
    return [float(number) for number in given]
