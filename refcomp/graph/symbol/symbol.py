"""Symbols: the outputs of a network under construction, in the classic style.

A symbol lists outputs of nodes. It is immutable, but for its notes (`Symbol.attr`): operators on
symbols make other symbols. `refcomp.graph.build` compiles a symbol.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
from refcomp.foundation.paths import checked_path
from refcomp.graph.dims import Shape
from refcomp.graph.graph import Array, Graph
from refcomp.graph.symbol import inference
from refcomp.graph.symbol.json import entries_to_json
from refcomp.graph.symbol.names import current_names
from refcomp.graph.symbol.nodes import (
    SymbolEntry,
    SymbolNode,
    ordered_nodes,
    substituted,
    variables_of,
)
from refcomp.graph.symbol.operator import attribute_texts, find_symbol_operator


class Symbol:
    """The outputs of a network: of a variable, of a node, or of several nodes.

    Operators of Python make nodes: `a + b`, `2 / a`, `-a`, `a ** b`. An index chooses an output:
    `a[0]`, `a["split0_output0"]`. A call such as `net(data=other)` puts a symbol in place of a
    variable.

    Args:
        entries: the outputs. Programs call `Variable`, `Group` or an operator instead.

    Source: NNVM, nnvm.symbol.Symbol.

    Example::

        >>> x = rc.sym.Variable("x")
        >>> y = rc.sym.dense(x, units=2, name="fc")
        >>> net = rc.sym.relu(y, name="act") * 2
        >>> y.name, y.list_input_names(), y.list_output_names()
        ('fc', ['x', 'fc_weight', 'fc_bias'], ['fc_output'])
        >>> [one.name for one in y.list_input_variables()]
        ['x', 'fc_weight', 'fc_bias']
        >>> y.attr("units"), y.list_attr()
        ('2', {'units': '2', 'use_bias': 'True'})
        >>> y.attr_dict()
        {'fc': {'units': '2', 'use_bias': 'True'}}
        >>> y.get_internals().list_output_names(), y.get_children().list_output_names()
        (['x', 'fc_weight', 'fc_bias', 'fc_output'], ['x', 'fc_weight', 'fc_bias'])
        >>> y.infer_shape(x=(1, 3))
        ([(1, 3), (2, 3), (2,)], [(1, 2)])
        >>> y.infer_dtype(x="float64")
        (['float64', 'float64', 'float64'], ['float64'])
        >>> y.json() == rc.sym.load_json(y.json()).json()
        True
        >>> print(y.debug_str().expandtabs())
        Symbol Outputs:
                output[0]=fc(0)
        Variable:x
        Variable:fc_weight
        Variable:fc_bias
        --------------------
        Op:dense, Name=fc
        Inputs:
                arg[0]=x(0)
                arg[1]=fc_weight(0)
                arg[2]=fc_bias(0)
        Attrs:
                units=2
                use_bias=True
        >>> print(y.to_graph({"x": (1, 3)}))
        graph net(x: f32[1, 3], fc_weight: f32[2, 3], fc_bias: f32[2]) -> (fc) {
          fc: f32[1, 2] = dense(x, fc_weight, fc_bias)
        }
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "net.json")
        >>> y.save(path)
        >>> rc.sym.load(path).list_output_names()
        ['fc_output']
    """

    def __init__(self, entries: Sequence[SymbolEntry]) -> None:
        listed = entries if isinstance(entries, tuple | list) else ()
        if not listed or not all(isinstance(one, SymbolEntry) for one in listed):
            raise UserError(
                f"{entries!r} are not outputs of nodes",
                remedy="make symbols by Variable, Group or an operator",
            )
        self.entries: tuple[SymbolEntry, ...] = tuple(listed)

    @property
    def name(self) -> str | None:
        """Return the name of the node; None for a group of several nodes."""
        nodes = {entry.node for entry in self.entries}
        return self.entries[0].node.name if len(nodes) == 1 else None

    def list_input_names(self) -> list[str]:
        """Return the names of the variables, in the order in which nodes read them."""
        return [variable.name for variable in variables_of(self.entries)]

    def list_input_variables(self) -> list[Symbol]:
        """Return the variables, in the order in which nodes read them."""
        return [
            Symbol([SymbolEntry(variable)]) for variable in variables_of(self.entries)
        ]

    def list_output_names(self) -> list[str]:
        """Return the names of the outputs.

        Variables have their own name. Other outputs end in `_output`, and in a number if the node
        has several outputs.
        """
        return [_output_name(entry) for entry in self.entries]

    def attr(self, key: str) -> str | None:
        """Return an attribute of the node as text; None if it has no such attribute.

        Args:
            key: the name of the attribute.
        """
        return self.list_attr().get(checked_name(key, "an attribute"))

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Return all attributes of the node as texts.

        Args:
            recursive: True for those of all nodes, under `NODE$ATTRIBUTE`.

        Raises:
            UserError: the symbol is a group of several nodes, and `recursive` is False.
        """
        if recursive:
            found = self.attr_dict().items()
            return {
                f"{name}${key}": t for name, texts in found for key, t in texts.items()
            }
        if self.name is None:
            raise UserError(
                "a group of several nodes has no attributes",
                remedy="ask for list_attr(recursive=True)",
            )
        return _texts_of(self.entries[0].node)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes of all nodes that have any, by the name of the node."""
        found = {node.name: _texts_of(node) for node in ordered_nodes(self.entries)}
        return {name: texts for name, texts in found.items() if texts}

    def get_internals(self) -> Symbol:
        """Return all outputs of all nodes that the symbol depends on, each after its inputs."""
        return Symbol(
            [
                SymbolEntry(node, place)
                for node in ordered_nodes(self.entries)
                for place in range(node.output_count)
            ]
        )

    def get_children(self) -> Symbol | None:
        """Return what the nodes of the symbol read; None if they read nothing."""
        nodes = dict.fromkeys(entry.node for entry in self.entries)
        read = [entry for node in nodes for entry in node.inputs]
        return Symbol(read) if read else None

    def infer_shape(self, **shapes: object) -> tuple[list[Shape], list[Shape]]:
        """Return the shapes of the variables and of the outputs.

        Args:
            **shapes: the shapes of variables by name, as far as no operator determines them. An
                extent is an int, or the name of a symbol.

        Raises:
            UserError: a name is unknown, nothing determines the shape of a variable, or an operator
                does not take such shapes.
        """
        types = inference.infer_types(self.entries, shapes)
        variables = [each.shape for each in types.variables.values()]
        return variables, [each.shape for each in types.outputs]

    def infer_dtype(self, **dtypes: object) -> tuple[list[str], list[str]]:
        """Return the dtypes of the variables and of the outputs, by numpy's names.

        Args:
            **dtypes: the dtypes of variables by name. Others have the dtype of the first input of
                the node that reads them, else float32.

        Raises:
            UserError: a name is unknown, or a dtype does not exist.
        """
        known = inference.infer_dtypes(self.entries, dtypes)
        variables = [known[SymbolEntry(one)] for one in variables_of(self.entries)]
        outputs = [known[entry] for entry in self.entries]
        return [to_numpy(dtype).name for dtype in variables], [
            to_numpy(d).name for d in outputs
        ]

    def to_graph(
        self,
        shapes: Mapping[str, object],
        dtypes: Mapping[str, object] | None = None,
        constants: Mapping[str, Array] | None = None,
        name: str = "net",
    ) -> Graph:
        """Return the graph of the symbol. Its inputs are the variables, in order.

        Args:
            shapes: name of a variable -> its shape, as for `infer_shape`.
            dtypes: name of a variable -> its dtype, as for `infer_dtype`.
            constants: name of a variable -> its array; such variables are constants, not inputs.
            name: the name of the graph.

        Raises:
            UserError: as for `infer_shape`, or an array has another type than its variable.
        """
        checked_name(name, "a graph")
        return inference.to_graph(
            self.entries, shapes, dtypes or {}, constants or {}, name
        )

    def json(self) -> str:
        """Return the classic JSON form, which `load_json` reads."""
        return entries_to_json(self.entries)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classic JSON form to a file, which `load` reads.

        Args:
            path: the file, which is replaced if it exists.

        Raises:
            UserError: the file cannot be written.
        """
        file = Path(checked_path(path, "a symbol"))
        try:
            file.write_text(self.json(), encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"the symbol cannot be written to {str(file)!r}",
                why=str(error),
                remedy="choose another path",
            ) from error

    def debug_str(self) -> str:
        """Return the nodes in order, with their inputs and attributes, as text."""
        lines = ["Symbol Outputs:"]
        for place, entry in enumerate(self.entries):
            lines.append(f"\toutput[{place}]={entry.node.name}({entry.output})")
        for node in ordered_nodes(self.entries):
            lines += _debug_lines(node)
        return "\n".join(lines)

    def __call__(
        self, *symbols: Symbol, name: str | None = None, **named: Symbol
    ) -> Symbol:
        """Return the network with other symbols in place of its variables.

        Args:
            *symbols: replace the variables in order.
            name: the name of the result; None keeps it.
            **named: replace variables by name.

        Raises:
            UserError: there are more symbols than variables, no variable has a name, or a symbol
                has several outputs. A name is given to several nodes.
        """
        variables = variables_of(self.entries)
        if symbols and named:
            raise UserError(
                "a network is composed by position and by name at once",
                remedy="pass all symbols by position, or all by name",
            )
        if len(symbols) > len(variables):
            raise UserError(
                f"{len(symbols)} symbols cannot replace {len(variables)} variables",
                remedy=f"variables: {', '.join(self.list_input_names()) or 'none'}",
            )
        given: dict[str, Symbol] = dict(named)
        # Not strict: the last variables may stay.
        for variable, symbol in zip(variables, symbols, strict=False):
            given[variable.name] = symbol
        inference.check_names(self.entries, given)
        put = {
            name: single_entry(one, f"variable {name!r}") for name, one in given.items()
        }

        def put_in_place(node: SymbolNode) -> SymbolEntry | SymbolNode:
            if node.operator is None and node.name in put:
                return put[node.name]
            return node

        made = Symbol(substituted(self.entries, put_in_place))
        return made if name is None else made._renamed(name)

    def _renamed(self, name: str) -> Symbol:
        """Return the symbol with another name of its only node."""
        if self.name is None:
            raise UserError(
                f"several nodes cannot all be called {name!r}",
                remedy="leave the name out",
            )
        renamed = replace(self.entries[0].node, name=checked_name(name, "a symbol"))
        return Symbol([SymbolEntry(renamed, one.output) for one in self.entries])

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([entry]) for entry in self.entries)

    def __getitem__(self, index: int | str) -> Symbol:
        if isinstance(index, str):
            names = self.list_output_names()
            if index not in names:
                raise UserError(
                    f"the symbol has no output {index!r}",
                    remedy=advise(index, names, f"outputs: {', '.join(names)}"),
                )
            return Symbol([self.entries[names.index(index)]])
        is_number = isinstance(index, int) and not isinstance(index, bool)
        if not is_number or not -len(self.entries) <= index < len(self.entries):
            raise UserError(
                f"the symbol has no output {index!r}",
                remedy=f"give a number from 0 to {len(self.entries) - 1}, or a name",
            )
        return Symbol([self.entries[index]])

    def __repr__(self) -> str:
        return f"<Symbol {', '.join(self.list_output_names()[:5])}>"

    def __add__(self, other: object) -> Symbol:
        return _binary(self, other, "broadcast_add", "__add_scalar__")

    def __radd__(self, other: object) -> Symbol:
        return _binary(self, other, "", "__add_scalar__")

    def __sub__(self, other: object) -> Symbol:
        return _binary(self, other, "broadcast_sub", "__sub_scalar__")

    def __rsub__(self, other: object) -> Symbol:
        return _binary(self, other, "", "__rsub_scalar__")

    def __mul__(self, other: object) -> Symbol:
        return _binary(self, other, "broadcast_mul", "__mul_scalar__")

    def __rmul__(self, other: object) -> Symbol:
        return _binary(self, other, "", "__mul_scalar__")

    def __truediv__(self, other: object) -> Symbol:
        return _binary(self, other, "broadcast_div", "__div_scalar__")

    def __rtruediv__(self, other: object) -> Symbol:
        return _binary(self, other, "", "__rdiv_scalar__")

    def __pow__(self, other: object) -> Symbol:
        return _binary(self, other, "broadcast_pow", "__pow_scalar__")

    def __rpow__(self, other: object) -> Symbol:
        return _binary(self, other, "", "__rpow_scalar__")

    def __neg__(self) -> Symbol:
        return _binary(self, -1.0, "", "__mul_scalar__")


def single_entry(symbol: object, of_what: str) -> SymbolEntry:
    """Return the only output of a symbol; UserError for another value."""
    if not isinstance(symbol, Symbol):
        raise UserError(
            f"{of_what} cannot be a {type(symbol).__name__}",
            remedy="pass a symbol, which Variable or an operator returns",
        )
    if len(symbol.entries) != 1:
        names = ", ".join(symbol.list_output_names()[:5])
        raise UserError(
            f"{of_what} cannot be a symbol with {len(symbol.entries)} outputs",
            why=f"its outputs are {names}",
            remedy="choose one by an index: symbol[0]",
        )
    return symbol.entries[0]


def apply_operator(
    operator_name: str,
    symbols: Sequence[object],
    named: Mapping[str, object],
    name: str | None = None,
    notes: Mapping[str, str] | None = None,
) -> Symbol:
    """Return the outputs of an operator, applied to symbols.

    Args:
        operator_name: the classic name of the operator.
        symbols: the first inputs.
        named: further inputs and attributes by name.
        name: the name of the node; None for an automatic one.
        notes: texts under names that begin and end with `__`.

    Raises:
        UserError: an input or an attribute is unknown, missing, given twice, or of another type.
    """
    operator = find_symbol_operator(operator_name)
    label = current_names().name_for(name, operator.name)
    where = f"{operator.name} node {label!r}"
    possible = {} if operator.is_variadic else {spec.name for spec in operator.inputs}
    given = {key: value for key, value in named.items() if key not in possible}
    values = operator.checked_attributes(given, where)
    chosen: dict[str, object] = {}
    if operator.is_variadic:
        entries = [single_entry(one, f"an input of {where}") for one in _flat(symbols)]
        if not entries:
            raise UserError(
                f"{operator.name} is applied to no symbols",
                remedy=f"pass symbols: {operator.name}(a, b)",
            )
    else:
        names = operator.input_names(values)
        if len(symbols) > len(names):
            raise UserError(
                f"{operator.name} is applied to {len(symbols)} symbols",
                where=where,
                remedy=f"it takes {', '.join(names) or 'none'}; attributes are given by name",
            )
        chosen.update(zip(names, symbols, strict=False))
        for key, value in named.items():
            if key in possible:
                _choose(chosen, key, value, names, where)
        entries = []
        for key in names:
            one = chosen.get(key)
            if one is None:
                entries.append(SymbolEntry(SymbolNode(f"{label}_{key}")))
            else:
                entries.append(single_entry(one, f"the input {key} of {where}"))
    node = SymbolNode(
        label,
        operator=operator,
        inputs=tuple(entries),
        attributes=values,
        notes=dict(notes or {}),
    )
    return Symbol([SymbolEntry(node, place) for place in range(node.output_count)])


def _choose(
    chosen: dict[str, object],
    key: str,
    value: object,
    names: Sequence[str],
    where: str,
) -> None:
    if key in chosen:
        raise UserError(
            f"the input {key} is given twice", where=where, remedy="give it once"
        )
    if value is None:
        return
    if key not in names:
        raise UserError(
            f"the input {key} is given, but does not exist",
            where=where,
            remedy=f"with these attributes the inputs are {', '.join(names)}",
        )
    chosen[key] = value


def _flat(symbols: Sequence[object]) -> list[object]:
    """Return symbols, of which the first may be a list, or have several outputs."""
    flat: list[object] = []
    for one in symbols:
        if isinstance(one, Symbol | list | tuple):
            flat += list(one)
        else:
            flat.append(one)
    return flat


def _binary(symbol: Symbol, other: object, of_two: str, of_scalar: str) -> Symbol:
    if isinstance(other, Symbol) and of_two:
        return apply_operator(of_two, [symbol, other], {})
    if isinstance(other, Real) and not isinstance(other, bool):
        return apply_operator(of_scalar, [symbol], {"scalar": other})
    raise UserError(
        f"a symbol cannot be combined with a {type(other).__name__}",
        remedy="combine it with a symbol or a number",
    )


def _output_name(entry: SymbolEntry) -> str:
    node = entry.node
    if node.operator is None:
        return node.name
    number = str(entry.output) if node.output_count > 1 else ""
    return f"{node.name}_output{number}"


def _texts_of(node: SymbolNode) -> dict[str, str]:
    return {**attribute_texts(node.attributes), **node.notes}


def _debug_lines(node: SymbolNode) -> list[str]:
    if node.operator is None:
        return [f"Variable:{node.name}"]
    lines = ["-" * 20, f"Op:{node.operator.name}, Name={node.name}", "Inputs:"]
    for place, entry in enumerate(node.inputs):
        lines.append(f"\targ[{place}]={entry.node.name}({entry.output})")
    texts = sorted(_texts_of(node).items())
    if texts:
        lines.append("Attrs:")
    return lines + [f"\t{key}={text}" for key, text in texts]
