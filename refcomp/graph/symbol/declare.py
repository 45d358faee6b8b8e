"""Declaration of classic operators: a function becomes a record, and a function on symbols.

`classic` reads inputs and attributes from the signature of a function that makes graph nodes. It
returns the function that programs call, whose manual page it writes from the docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import get_type_hints

from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import CompilerBug
from refcomp.graph.dims import Shape
from refcomp.graph.graph import Value
from refcomp.graph.symbol.attributes import kind_of_hint
from refcomp.graph.symbol.manual import manual_page
from refcomp.graph.symbol.operator import (
    Attributes,
    DTypeRule,
    InputSpec,
    NodeMaker,
    ShapeRule,
    SymbolAttributeSpec,
    SymbolOperator,
    register_symbol_operator,
)
from refcomp.graph.symbol.symbol import Symbol, apply_operator

Convert = Callable[..., Value | tuple[Value, ...]]


def same_shapes(known: Mapping[str, Shape], _: Attributes) -> Mapping[str, Shape]:
    """Return for every input the shape of the first known one."""
    shape = next(iter(known.values()), None)
    return {} if shape is None else _Everywhere(shape)


class _Everywhere(dict[str, Shape]):
    """A mapping that has one shape under every name."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def __contains__(self, _: object) -> bool:
        return True

    def __getitem__(self, _: str) -> Shape:
        return self.shape


def no_shapes(_: Mapping[str, Shape], __: Attributes) -> Mapping[str, Shape]:
    """Return no shapes: the inputs do not determine each other."""
    return {}


def same_dtype(inputs: Sequence[DType], _: Attributes) -> Sequence[DType]:
    """Return the dtype of the first input for the only output."""
    return inputs[:1]


def dtype_of_attribute(_: Sequence[DType], attributes: Attributes) -> Sequence[DType]:
    """Return the dtype that the attribute `dtype` names."""
    return [as_dtype(attributes["dtype"])]


def one_output(_: Attributes) -> int:
    """Return 1."""
    return 1


def classic(
    *,
    shapes: ShapeRule = no_shapes,
    dtypes: DTypeRule = same_dtype,
    count_outputs: Callable[[Attributes], int] = one_output,
    given_if: Mapping[str, str] | None = None,
    hidden_outputs: int = 0,
    aliases: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> Callable[[Convert], Callable[..., Symbol]]:
    """Return a decorator that declares a classic operator.

    Args:
        shapes: the rule for the shapes of unknown inputs.
        dtypes: the rule for the dtypes of the outputs.
        count_outputs: returns the number of outputs from the attributes.
        given_if: input -> the attribute that must be True for it to exist.
        hidden_outputs: the number of outputs that only the classic JSON form counts.
        aliases: other names of the operator.
        texts: the texts of parameters on the manual page, if they differ from the usual ones.
    """

    def declare(convert: Convert) -> Callable[..., Symbol]:
        operator = _operator_of(
            convert,
            shapes=shapes,
            dtypes=dtypes,
            count_outputs=count_outputs,
            given_if=given_if or {},
            hidden_outputs=hidden_outputs,
            aliases=tuple(aliases),
        )
        register_symbol_operator(operator)
        return _function_of(operator, convert, texts or {})

    return declare


def _operator_of(
    convert: Convert,
    *,
    shapes: ShapeRule,
    dtypes: DTypeRule,
    count_outputs: Callable[[Attributes], int],
    given_if: Mapping[str, str],
    hidden_outputs: int,
    aliases: tuple[str, ...],
) -> SymbolOperator:
    inputs = []
    attributes = []
    is_variadic = False
    hints = get_type_hints(convert)
    for parameter in inspect.signature(convert).parameters.values():
        hint = hints[parameter.name]
        if hint is NodeMaker:
            continue
        if parameter.kind is not parameter.KEYWORD_ONLY:
            inputs.append(InputSpec(parameter.name, given_if.get(parameter.name, "")))
            is_variadic = parameter.kind is parameter.VAR_POSITIONAL
            continue
        required = parameter.default is parameter.empty
        attributes.append(
            SymbolAttributeSpec(
                parameter.name,
                kind_of_hint(hint),
                None if required else parameter.default,
                required,
            )
        )
    name = convert.__name__
    if not convert.__doc__:
        raise CompilerBug(f"the classic operator {name} has no docstring")
    return SymbolOperator(
        name,
        inputs=tuple(inputs),
        attributes=tuple(attributes),
        convert=convert,
        is_variadic=is_variadic,
        shapes=shapes,
        dtypes=dtypes,
        count_outputs=count_outputs,
        hidden_outputs=hidden_outputs,
        aliases=aliases,
    )


def _function_of(
    operator: SymbolOperator, convert: Convert, texts: Mapping[str, str]
) -> Callable[..., Symbol]:
    """Return the function on symbols, with a signature and a manual page."""

    def apply(
        *symbols: object,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **named: object,
    ) -> Symbol:
        return apply_operator(operator.name, symbols, named, name, attr)

    apply.__name__ = apply.__qualname__ = operator.name
    apply.__module__ = convert.__module__
    apply.__doc__ = manual_page(operator, inspect.getdoc(convert) or "", texts)
    apply.__signature__ = _signature_of(operator)  # type: ignore[attr-defined]
    return apply


def _signature_of(operator: SymbolOperator) -> inspect.Signature:
    of_inputs = inspect.Parameter.POSITIONAL_OR_KEYWORD
    of_attributes = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for spec in operator.inputs:
        if operator.is_variadic:
            parameters.append(
                inspect.Parameter(spec.name, inspect.Parameter.VAR_POSITIONAL)
            )
        else:
            parameters.append(inspect.Parameter(spec.name, of_inputs, default=None))
    for attribute in operator.attributes:
        default = inspect.Parameter.empty if attribute.required else attribute.default
        parameters.append(
            inspect.Parameter(attribute.name, of_attributes, default=default)
        )
    parameters.append(inspect.Parameter("name", of_attributes, default=None))
    return inspect.Signature(parameters)
