"""The registry of operators: each with its te compute, its numpy meaning, and samples.

An operator's file declares it once, beside its meaning::

    def relu(data: Tensor) -> Tensor: ...

    @meaning_of(relu, pattern="elementwise", sample=one_operand)
    def relu_numpy(data: Array) -> Array: ...

What an operator takes is read from the signature of the compute. A parameter `x: Tensor` is an
input, `x: Tensor | None = None` an optional one, and `*x: Tensor` any number of them. All others
are attributes, whose annotations say of which types.

The te compute is also the rule for dtype and shape: `refcomp.graph.infer` builds it and reads them
from its result.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, TypeVar

from refcomp.foundation.errors import CompilerBug, UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.shapes import Array
from refcomp.topi.sources import OPERATOR_HOMES

# How an operator computes its result, and so how its node may share a kernel with others.
Pattern = Literal[
    "elementwise",  # from the operand's element at the same index
    "broadcast",  # from elements of several operands that broadcasting puts at the same index
    "injective",  # each element from few elements, found by a function of its index
    "reduction",  # by loops that read each element of the operand once
    "anchor",  # by other loops, after which elementwise operators may follow
    "opaque",  # by loops that nothing may join, or with several results
]

_Meaning = TypeVar("_Meaning", bound=Callable[..., Array | list[Array]])

Attribute = bool | int | float | str | tuple[int | float, ...]

# Annotation of a parameter -> type of the attribute in a graph.
_KINDS: dict[str, type[Attribute]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "DTypeLike": str,
    "Pair": tuple,
    "Padding": tuple,
    "Sequence[int]": tuple,
    "Sequence[float]": tuple,
    "tuple[int, int]": tuple,
    "tuple[float, float]": tuple,
}


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """The declaration of an attribute of an operator.

    Attributes:
        name: the name of the attribute, which is a parameter of the operator's compute.
        kinds: the types that a value may have: of bool, int, float, str and tuple. An int is no
            float here, and True no int.
        default: the value if the attribute is not given. None means that the operator itself
            chooses.
        required: True if the attribute must be given.

    Example::

        >>> for spec in rc.graph.find_operator("softmax").attributes:
        ...     print(spec.name, spec.kinds, spec.default, spec.required)
        axis (<class 'int'>,) -1 False
    """

    name: str
    kinds: tuple[type[Attribute], ...]
    default: Attribute | None = None
    required: bool = False

    def __str__(self) -> str:
        return " or ".join(kind.__name__ for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class OperatorSignature:
    """The inputs and attributes that an operator takes.

    Attributes:
        name: the name by which nodes of graphs use the operator.
        inputs: the names of the inputs, for messages.
        attributes: the declarations of the attributes.
        required: the number of inputs that must be given; -1 for all.
        variadic: True if the last input may be repeated.
    """

    name: str
    inputs: tuple[str, ...]
    attributes: tuple[AttributeSpec, ...] = ()
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

    def check_attributes(
        self,
        attributes: Mapping[str, Attribute],
        given_later: Collection[str] = (),
    ) -> None:
        """Raise UserError for an attribute that is unknown, missing, or of another type.

        Args:
            attributes: name -> value, as a node gives them.
            given_later: the names of attributes that may be missing, since a run determines them.

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
                known = f"attributes: {', '.join(specs) or 'none'}"
                raise UserError(
                    f"{self.name} has no attribute {name!r}",
                    remedy=advise(name, specs, known),
                )
            # The exact type: True is not a number here, and 1 is not a float.
            if type(value) not in specs[name].kinds:
                raise UserError(
                    f"the attribute {name} of {self.name} is {value!r}",
                    remedy=f"give a value of type {specs[name]}",
                )
        required = [spec.name for spec in self.attributes if spec.required]
        given = {*attributes, *given_later}
        missing = [name for name in required if name not in given]
        if missing:
            raise UserError(
                f"{self.name} lacks the attribute {', '.join(missing)}",
                remedy=f"attributes without a default must be given: {', '.join(missing)}",
            )


@dataclass(frozen=True, slots=True)
class Operator(OperatorSignature):
    """An operator: its inputs and attributes, its te compute and its numpy meaning.

    `compute` and `numpy` take the inputs by position and the attributes by name.

    Attributes:
        name: the name by which nodes of graphs use the operator.
        inputs: the names of the inputs, for messages.
        attributes: the declarations of the attributes.
        required: the number of inputs that must be given; -1 for all.
        variadic: True if the last input may be repeated.
        compute: takes tensors and returns a tensor, or a list of tensors for several outputs. The
            shapes and dtypes of its results are those of a node.
        numpy: does the same with arrays. It is the meaning that compiled code is judged by. Nothing
            writes to its results later.
        pattern: how a node may join others in one kernel: elementwise, broadcast, injective,
            reduction, anchor or opaque. The first three can be computed where they are read.
        sample: draws operands and attributes, by which the operator is tested on every target and
            its mutants are tried; None if there is none.

    Source: TVM, relay.op (`register_compute`, `OpPattern`).

    Example::

        >>> softmax = rc.graph.find_operator("softmax")
        >>> softmax.inputs, softmax.least_inputs, softmax.pattern
        (('data',), 1, 'anchor')
        >>> print(softmax.numpy(np.zeros((1, 2), "float32"), axis=1))
        [[0.5 0.5]]
    """

    compute: Callable[..., Tensor | list[Tensor]] = field(kw_only=True)
    numpy: Callable[..., Array | list[Array]] = field(kw_only=True)
    pattern: Pattern = field(default="anchor", kw_only=True)
    sample: Callable[[Draws], Sample] | None = field(default=None, kw_only=True)

    @property
    def has_loops(self) -> bool:
        """Return True if an element of the result takes a loop; False if few operations do.

        Example::

            >>> [rc.graph.find_operator(name).has_loops for name in ("relu", "sum")]
            [False, True]
        """
        return self.pattern in ("reduction", "anchor", "opaque")


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
    home = OPERATOR_HOMES.get(operator.name, operator.compute.__module__)
    if operator.name in _OPERATORS or operator.compute.__module__ != home:
        raise UserError(
            f"an operator {operator.name} is registered already",
            remedy="choose another name",
        )
    _OPERATORS[operator.name] = operator


def meaning_of(
    compute: Callable[..., Tensor | list[Tensor]],
    *,
    sample: Callable[[Draws], Sample],
    pattern: Pattern = "anchor",
) -> Callable[[_Meaning], _Meaning]:
    """Return a decorator that registers a function of arrays as the meaning of `compute`.

    Args:
        compute: the operator on tensors, from whose signature inputs and attributes are read. The
            function of arrays takes the same.
        sample: draws operands and attributes, for tests and mutants.
        pattern: how a node may join others in one kernel (see Operator).

    Raises:
        UserError: the operator's name is taken.
    """

    def register(numpy: _Meaning) -> _Meaning:
        register_operator(_operator_of(compute, numpy, pattern, sample))
        return numpy

    return register


def _operator_of(
    compute: Callable[..., Tensor | list[Tensor]],
    numpy: Callable[..., Array | list[Array]],
    pattern: Pattern,
    sample: Callable[[Draws], Sample],
) -> Operator:
    """Return the record of an operator, whose inputs and attributes `compute` declares."""
    inputs: list[str] = []
    attributes: list[AttributeSpec] = []
    required = 0
    variadic = False
    for parameter in inspect.signature(compute).parameters.values():
        types = [part.strip() for part in str(parameter.annotation).split("|")]
        if types[0] != "Tensor":
            attributes.append(_attribute_of(parameter, types, compute.__name__))
            continue
        inputs.append(parameter.name)
        required += "None" not in types
        variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL
    return Operator(
        name=compute.__name__,
        inputs=tuple(inputs),
        compute=compute,
        numpy=numpy,
        attributes=tuple(attributes),
        pattern=pattern,
        required=required,
        variadic=variadic,
        sample=sample,
    )


def _attribute_of(
    parameter: inspect.Parameter, types: Sequence[str], operator: str
) -> AttributeSpec:
    named = [name for name in types if name != "None"]
    unknown = [name for name in named if name not in _KINDS]
    if unknown:
        raise CompilerBug(
            f"{operator} declares the attribute {parameter.name}: {', '.join(unknown)}",
            remedy=f"annotate it by {', '.join(_KINDS)}",
        )
    kinds = tuple(dict.fromkeys(_KINDS[name] for name in named))
    if parameter.default is inspect.Parameter.empty:
        return AttributeSpec(parameter.name, kinds, required=True)
    default = parameter.default
    if isinstance(default, list):
        default = tuple(default)
    return AttributeSpec(parameter.name, kinds, default)


def find_operator(name: str) -> Operator:
    """Return an operator by its name.

    Args:
        name: the name, such as `"relu"`.

    Raises:
        UserError: the name is unknown. The remedy lists all operators, or the nearest.

    Example::

        >>> rc.graph.find_operator("softmax").compute is rc.topi.softmax
        True
    """
    if checked_name(name, "an operator") in OPERATOR_HOMES:
        import_module(OPERATOR_HOMES[name])
    if name not in _OPERATORS:
        known = sorted(operator_names())
        raise UserError(
            f"unknown operator {name!r}",
            remedy=advise(name, known, f"operators: {', '.join(known)}"),
        )
    return _OPERATORS[name]


def operator_names() -> tuple[str, ...]:
    """Return the names of all operators: those of topi by family, then registered ones.

    Example::

        >>> {"relu", "conv2d", "softmax"} <= set(rc.graph.operator_names())
        True
    """
    return tuple(OPERATOR_HOMES | _OPERATORS)
