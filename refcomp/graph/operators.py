"""The operators of a graph: inputs, attributes, te compute and numpy meaning of each.

The te compute is also the rule for dtype and shape: `refcomp.graph.infer` builds it and reads them
from its result. A compute takes its inputs by position (None for an optional input that is left
out) and its attributes by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
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
    """The declaration of an attribute of an operator.

    Attributes:
        name: the name of the attribute, which is a parameter of the operator's compute.
        kind: the type of the value: bool, int, float, str or tuple. A value of type float must not
            be an int.
        default: the value if the attribute is not given; None if it must be given.

    Example::

        >>> for spec in rc.graph.find_operator("softmax").attributes:
        ...     print(spec.name, spec.kind.__name__, spec.default)
        axis int -1
    """

    name: str
    kind: type[Attribute]
    default: Attribute | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of graphs: its inputs and attributes, its te compute and its numpy meaning.

    `compute` and `numpy` take the inputs by position and the attributes by name.

    Attributes:
        name: the name by which nodes use the operator.
        inputs: the names of the inputs, for messages.
        compute: takes tensors and returns a tensor, or a list of tensors for several outputs. The
            shapes and dtypes of its results are those of the node.
        numpy: does the same with arrays. It is the meaning that compiled code is judged by. Nothing
            writes to its results later.
        attributes: the declarations of the attributes.
        pattern: how a node may join others in one kernel. An `anchor` has loops of its own. An
            `elementwise` node or a `movement` can be computed where its result is read.
        required: the number of inputs that must be given; -1 for all.
        variadic: True if the last input may be repeated.

    Source: TVM, relay.op (`register_compute`, `OpPattern`).

    Example::

        >>> softmax = rc.graph.find_operator("softmax")
        >>> softmax.inputs, softmax.least_inputs, softmax.pattern
        (('data',), 1, 'anchor')
        >>> print(softmax.numpy(np.zeros((1, 2), "float32"), axis=1))
        [[0.5 0.5]]
    """

    name: str
    inputs: tuple[str, ...]
    compute: Callable[..., Tensor | list[Tensor]]
    numpy: Callable[..., Array | list[Array]]
    attributes: tuple[AttributeSpec, ...] = ()
    pattern: Pattern = "anchor"
    required: int = -1
    variadic: bool = False

    @property
    def least_inputs(self) -> int:
        """Return the number of inputs that are required."""
        return len(self.inputs) if self.required < 0 else self.required

    def check_inputs(self, inputs: Sequence[object]) -> None:
        """Raise UserError for too few or too many inputs, or if a required input is missing.

        Args:
            inputs: what a node gives; None for an input that is left out.

        Raises:
            UserError: as above.

        Example::

            >>> rc.graph.find_operator("add").check_inputs([1])
            Traceback (most recent call last):
                ...
            refcomp.foundation.errors.UserError: add cannot be applied to 1 inputs...
        """
        most = math.inf if self.variadic else len(self.inputs)
        given = len(inputs)
        # Not strict: there may be more or fewer inputs.
        pairs = zip(self.inputs[: self.least_inputs], inputs, strict=False)
        missing = [name for name, value in pairs if value is None]
        if not self.least_inputs <= given <= most or missing:
            lacking = f", without {', '.join(missing)}" if missing else ""
            raise UserError(
                f"{self.name} cannot be applied to {given} inputs{lacking}",
                remedy=f"it takes {', '.join(self.inputs)}; {self.least_inputs} are required",
            )

    def check_attributes(self, attributes: Mapping[str, Attribute]) -> None:
        """Raise UserError for an attribute that is unknown, missing, or of another type.

        Args:
            attributes: name -> value, as a node gives them.

        Raises:
            UserError: as above.

        Example::

            >>> rc.graph.find_operator("softmax").check_attributes({"axis": 1.0})
            Traceback (most recent call last):
                ...
            refcomp.foundation.errors.UserError: the attribute axis of softmax is 1.0...
        """
        specs = {spec.name: spec for spec in self.attributes}
        for name, value in attributes.items():
            if name not in specs:
                raise UserError(
                    f"{self.name} has no attribute {name!r}",
                    remedy=advise(
                        name, specs, f"attributes: {', '.join(specs) or 'none'}"
                    ),
                )
            # The exact type: True is not a number here, and 1 is not a float.
            if type(value) is not specs[name].kind:
                wanted = specs[name].kind.__name__
                raise UserError(
                    f"the attribute {name} of {self.name} is {value!r}",
                    remedy=f"give a value of type {wanted}",
                )
        required = [spec.name for spec in self.attributes if spec.default is None]
        missing = [name for name in required if name not in attributes]
        if missing:
            raise UserError(
                f"{self.name} lacks the attribute {', '.join(missing)}",
                remedy=f"attributes without a default must be given: {', '.join(missing)}",
            )


_OPERATORS: dict[str, Operator] = {}


def register_operator(operator: Operator) -> None:
    """Make an operator known by its name, so that graphs may use it.

    Args:
        operator: the record of its inputs, its attributes, its compute and its numpy meaning.

    Raises:
        UserError: the name is taken.

    Example::

        >>> rc.graph.register_operator(rc.graph.find_operator("relu"))
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: ...relu...
    """
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
    """Return an operator of graphs by its name.

    Args:
        name: the name, such as `"relu"`.

    Raises:
        UserError: the name is unknown. The remedy lists all operators.

    Example::

        >>> rc.graph.find_operator("softmax").compute is rc.topi.softmax
        True
    """
    if checked_name(name, "an operator") not in _OPERATORS:
        remedy = f"operators: {', '.join(sorted(_OPERATORS))}"
        raise UserError(
            f"unknown operator {name!r}", remedy=advise(name, _OPERATORS, remedy)
        )
    return _OPERATORS[name]


def operator_names() -> tuple[str, ...]:
    """Return the names of all operators, in the order of their registration.

    Example::

        >>> {"relu", "conv2d", "softmax"} <= set(rc.graph.operator_names())
        True
    """
    return tuple(_OPERATORS)


# Attributes are in elements. A pair is down and across; padding is top, left, bottom and right.
_STRIDES = AttributeSpec("strides", tuple, (1, 1))
_PADDING = AttributeSpec("padding", tuple, (0, 0, 0, 0))
_DILATION = AttributeSpec("dilation", tuple, (1, 1))
_KERNEL = AttributeSpec("kernel", tuple)
_LAYOUT = AttributeSpec("layout", str, "NCHW")
_ONE = ("data",)
_TWO = ("a", "b")


def _register(
    name: str,
    inputs: tuple[str, ...],
    compute: Callable[..., Tensor | list[Tensor]],
    numpy: Callable[..., Array | list[Array]],
    *attributes: AttributeSpec,
    pattern: Pattern = "anchor",
    required: int = -1,
    variadic: bool = False,
) -> None:
    register_operator(
        Operator(name, inputs, compute, numpy, attributes, pattern, required, variadic)
    )


_register(
    "conv2d",
    ("data", "weight", "bias"),
    conv2d,
    conv2d_numpy,
    _STRIDES,
    _PADDING,
    _DILATION,
    AttributeSpec("groups", int, 1),
    required=2,
)
_register(
    "conv2d_nhwc",
    ("data", "weight", "bias"),
    conv2d_nhwc,
    conv2d_nhwc_numpy,
    _STRIDES,
    _PADDING,
    _DILATION,
    required=2,
)
_register(
    "batch_norm",
    ("data", "gamma", "beta", "mean", "variance"),
    batch_norm,
    batch_norm_numpy,
    AttributeSpec("epsilon", float, 1e-5),
    AttributeSpec("axis", int, 1),
    pattern="elementwise",
)
_register(
    "max_pool2d",
    _ONE,
    pool.max_pool2d,
    pool.max_pool2d_numpy,
    _KERNEL,
    _STRIDES,
    _PADDING,
    _DILATION,
    _LAYOUT,
)
_register(
    "avg_pool2d",
    _ONE,
    pool.avg_pool2d,
    pool.avg_pool2d_numpy,
    _KERNEL,
    _STRIDES,
    _PADDING,
    AttributeSpec("count_include_pad", bool, False),
    _LAYOUT,
)
_register(
    "global_avg_pool2d",
    _ONE,
    pool.global_avg_pool2d,
    pool.global_avg_pool2d_numpy,
    _LAYOUT,
)
_register(
    "gemm",
    ("a", "b", "c"),
    dense.gemm,
    dense.gemm_numpy,
    AttributeSpec("alpha", float, 1.0),
    AttributeSpec("beta", float, 1.0),
    AttributeSpec("trans_a", bool, False),
    AttributeSpec("trans_b", bool, False),
    required=2,
)
_register("matmul", _TWO, dense.matmul, dense.matmul_numpy)
_register("softmax", _ONE, softmax, softmax_numpy, AttributeSpec("axis", int, -1))
for _name in ("relu", "sigmoid", "tanh", "identity"):
    _register(
        _name,
        _ONE,
        getattr(elementwise, _name),
        getattr(elementwise, f"{_name}_numpy"),
        pattern="elementwise",
    )
_register(
    "clip",
    _ONE,
    elementwise.clip,
    elementwise.clip_numpy,
    AttributeSpec("minimum", float, -math.inf),
    AttributeSpec("maximum", float, math.inf),
    pattern="elementwise",
)
for _name in ("add", "subtract", "multiply", "divide"):
    _register(
        _name,
        _TWO,
        getattr(broadcast, _name),
        getattr(broadcast, f"{_name}_numpy"),
        pattern="elementwise",
    )
_register(
    "reshape",
    _ONE,
    transform.reshape,
    transform.reshape_numpy,
    AttributeSpec("shape", tuple),
    pattern="movement",
)
_register(
    "flatten",
    _ONE,
    transform.flatten,
    transform.flatten_numpy,
    AttributeSpec("axis", int, 1),
    pattern="movement",
)
_register(
    "transpose",
    _ONE,
    transform.transpose,
    transform.transpose_numpy,
    AttributeSpec("axes", tuple),
    pattern="movement",
)
# An anchor, since each element of a fused reader would choose among all parts.
_register(
    "concatenate",
    _ONE,
    transform.concatenate,
    transform.concatenate_numpy,
    AttributeSpec("axis", int),
    variadic=True,
)
# An anchor, since a fused kernel has only one output.
_register(
    "split",
    _ONE,
    transform.split,
    transform.split_numpy,
    AttributeSpec("axis", int),
    AttributeSpec("sizes", tuple),
)
