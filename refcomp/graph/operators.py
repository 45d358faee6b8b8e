"""The operators of a graph: what each takes, its te compute and its numpy meaning.

The te compute is also the rule for dtype and shape: `refcomp.graph.infer` builds it and reads them
from its result. A compute takes its inputs by position (None for an optional input that is left
out) and its attributes by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.graph.graph import Array, Attribute
from refcomp.te.tensor import Tensor
from refcomp.topi import broadcast, dense, elementwise, pool, transform
from refcomp.topi.batch_norm import batch_norm, batch_norm_numpy
from refcomp.topi.conv2d import conv2d, conv2d_nhwc, conv2d_nhwc_numpy, conv2d_numpy
from refcomp.topi.softmax import softmax, softmax_numpy

# How a node may join others in one kernel. An `anchor` has loops of its own. An `elementwise` node,
# and a `movement`, which only moves elements, can be computed where their results are read.
Pattern = Literal["anchor", "elementwise", "movement"]


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """The type of an attribute, and its default."""

    name: str
    kind: type[Any]  # class of the value, such as int or tuple
    default: Attribute | None = None  # None: the attribute must be given


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator: its inputs and attributes, its te compute and its numpy meaning."""

    name: str
    inputs: tuple[str, ...]  # names
    compute: Callable[..., Tensor | list[Tensor]]  # a list for several outputs
    numpy: Callable[..., Array | list[Array]]
    attributes: tuple[AttributeSpec, ...] = ()
    pattern: Pattern = "anchor"
    required: int = -1  # number of inputs that must be given; -1: all
    variadic: bool = False  # the last input may be repeated

    @property
    def least_inputs(self) -> int:
        """Return the number of inputs that are required."""
        return len(self.inputs) if self.required < 0 else self.required

    def check_inputs(self, inputs: Sequence[Any]) -> None:
        """Raise UserError for too few or too many inputs, or if a required input is missing."""
        most = math.inf if self.variadic else len(self.inputs)
        given = len(inputs)
        missing = [
            n
            for n, v in zip(self.inputs[: self.least_inputs], inputs, strict=False)
            if v is None
        ]
        if not self.least_inputs <= given <= most or missing:
            lacking = f", without {', '.join(missing)}" if missing else ""
            raise UserError(
                f"{self.name} cannot be applied to {given} inputs{lacking}",
                remedy=f"it takes {', '.join(self.inputs)}; {self.least_inputs} are required",
            )

    def check_attributes(self, attributes: Mapping[str, Attribute]) -> None:
        """Raise UserError for an attribute that is unknown, missing, or of another type."""
        specs = {spec.name: spec for spec in self.attributes}
        for name, value in attributes.items():
            if name not in specs:
                raise UserError(
                    f"{self.name} has no attribute {name!r}",
                    remedy=f"attributes: {', '.join(specs) or 'none'}",
                )
            if type(value) is not specs[name].kind:
                wanted = specs[name].kind.__name__
                raise UserError(
                    f"the attribute {name} of {self.name} is {value!r}",
                    remedy=f"give a value of type {wanted}",
                )
        missing = [
            n
            for n, spec in specs.items()
            if spec.default is None and n not in attributes
        ]
        if missing:
            raise UserError(
                f"{self.name} lacks the attribute {', '.join(missing)}",
                remedy=f"attributes without a default must be given: {', '.join(missing)}",
            )


_OPERATORS: dict[str, Operator] = {}


def register_operator(operator: Operator) -> None:
    """Make `operator` known by its name, or raise UserError if the name is taken."""
    if not isinstance(operator, Operator):
        raise UserError(
            f"{operator!r} is not an operator", remedy="pass a refcomp.graph.Operator"
        )
    if operator.name in _OPERATORS:
        raise UserError(
            f"an operator {operator.name} is registered already",
            remedy="choose another name",
        )
    _OPERATORS[operator.name] = operator


def find_operator(name: str) -> Operator:
    """Return the operator called `name`, or raise UserError that lists all operators."""
    if checked_name(name, "an operator") not in _OPERATORS:
        known = ", ".join(sorted(_OPERATORS))
        raise UserError(f"unknown operator {name!r}", remedy=f"operators: {known}")
    return _OPERATORS[name]


def operator_names() -> tuple[str, ...]:
    """Return the names of all operators, in the order of their registration."""
    return tuple(_OPERATORS)


_PAIR_OF_ONES = (1, 1)
_NO_PADDING = (0, 0, 0, 0)
_STRIDES = AttributeSpec("strides", tuple, _PAIR_OF_ONES)
_PADDING = AttributeSpec("padding", tuple, _NO_PADDING)
_DILATION = AttributeSpec("dilation", tuple, _PAIR_OF_ONES)
_KERNEL = AttributeSpec("kernel", tuple)
_LAYOUT = AttributeSpec("layout", str, "NCHW")


def _register_elementwise(
    name: str, compute: Any, numpy: Any, *attributes: AttributeSpec
) -> None:
    register_operator(
        Operator(name, ("data",), compute, numpy, attributes, "elementwise")
    )


def _register_broadcast(name: str, compute: Any, numpy: Any) -> None:
    register_operator(Operator(name, ("a", "b"), compute, numpy, (), "elementwise"))


def _register_pool(
    name: str, compute: Any, numpy: Any, *attributes: AttributeSpec
) -> None:
    register_operator(Operator(name, ("data",), compute, numpy, (*attributes, _LAYOUT)))


def _register_movement(
    name: str, compute: Any, numpy: Any, *attributes: AttributeSpec
) -> None:
    register_operator(Operator(name, ("data",), compute, numpy, attributes, "movement"))


_CONV_INPUTS = ("data", "weight", "bias")
register_operator(
    Operator(
        "conv2d",
        _CONV_INPUTS,
        conv2d,
        conv2d_numpy,
        (_STRIDES, _PADDING, _DILATION, AttributeSpec("groups", int, 1)),
        required=2,
    )
)
register_operator(
    Operator(
        "conv2d_nhwc",
        _CONV_INPUTS,
        conv2d_nhwc,
        conv2d_nhwc_numpy,
        (_STRIDES, _PADDING, _DILATION),
        required=2,
    )
)
register_operator(
    Operator(
        "batch_norm",
        ("data", "gamma", "beta", "mean", "variance"),
        batch_norm,
        batch_norm_numpy,
        (AttributeSpec("epsilon", float, 1e-5), AttributeSpec("axis", int, 1)),
        "elementwise",
    )
)
_WINDOW = (_KERNEL, _STRIDES, _PADDING)
_register_pool(
    "max_pool2d", pool.max_pool2d, pool.max_pool2d_numpy, *_WINDOW, _DILATION
)
_register_pool(
    "avg_pool2d",
    pool.avg_pool2d,
    pool.avg_pool2d_numpy,
    *_WINDOW,
    AttributeSpec("count_include_pad", bool, False),
)
_register_pool(
    "global_avg_pool2d", pool.global_avg_pool2d, pool.global_avg_pool2d_numpy
)
register_operator(
    Operator(
        "gemm",
        ("a", "b", "c"),
        dense.gemm,
        dense.gemm_numpy,
        (
            AttributeSpec("alpha", float, 1.0),
            AttributeSpec("beta", float, 1.0),
            AttributeSpec("trans_a", bool, False),
            AttributeSpec("trans_b", bool, False),
        ),
        required=2,
    )
)
register_operator(Operator("matmul", ("a", "b"), dense.matmul, dense.matmul_numpy))
register_operator(
    Operator(
        "softmax",
        ("data",),
        softmax,
        softmax_numpy,
        (AttributeSpec("axis", int, -1),),
    )
)
_register_elementwise("relu", elementwise.relu, elementwise.relu_numpy)
_register_elementwise("sigmoid", elementwise.sigmoid, elementwise.sigmoid_numpy)
_register_elementwise("tanh", elementwise.tanh, elementwise.tanh_numpy)
_register_elementwise("identity", elementwise.identity, elementwise.identity_numpy)
_register_elementwise(
    "clip",
    elementwise.clip,
    elementwise.clip_numpy,
    AttributeSpec("minimum", float, -math.inf),
    AttributeSpec("maximum", float, math.inf),
)
_register_broadcast("add", broadcast.add, broadcast.add_numpy)
_register_broadcast("subtract", broadcast.subtract, broadcast.subtract_numpy)
_register_broadcast("multiply", broadcast.multiply, broadcast.multiply_numpy)
_register_broadcast("divide", broadcast.divide, broadcast.divide_numpy)
_register_movement(
    "reshape", transform.reshape, transform.reshape_numpy, AttributeSpec("shape", tuple)
)
_register_movement(
    "flatten", transform.flatten, transform.flatten_numpy, AttributeSpec("axis", int, 1)
)
_register_movement(
    "transpose",
    transform.transpose,
    transform.transpose_numpy,
    AttributeSpec("axes", tuple),
)
register_operator(
    Operator(
        "concatenate",
        ("data",),
        transform.concatenate,
        transform.concatenate_numpy,
        (AttributeSpec("axis", int),),
        variadic=True,
    )
)
register_operator(
    Operator(
        "split",
        ("data",),
        transform.split,
        transform.split_numpy,
        (AttributeSpec("axis", int), AttributeSpec("sizes", tuple)),
    )
)
