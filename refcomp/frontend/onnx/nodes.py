"""Convert the nodes of a graph, a subgraph or a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.attributes import Attributes, Proto, read_attributes
from refcomp.frontend.onnx.deferred import defer
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES, STRINGS
from refcomp.frontend.onnx.functions import bound_node, schema_function
from refcomp.frontend.onnx.node import OnnxNode, Subgraph
from refcomp.frontend.onnx.output_types import output_types
from refcomp.frontend.onnx.parts import needed_nodes
from refcomp.frontend.onnx.reading import onnx_package
from refcomp.frontend.onnx.refusals import Refusals
from refcomp.frontend.onnx.registry import Converter, find_converter, standard
from refcomp.frontend.onnx.scope import ValueScope
from refcomp.frontend.onnx.signatures import check_signature
from refcomp.frontend.onnx.string_codes import (
    check_reads_strings,
    convert_on_codes,
    moves_strings,
)
from refcomp.frontend.onnx.tensors import TensorReader
from refcomp.graph.control.types import NodeType
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.graph import Array, Value, spell
from refcomp.graph.macros import NotKnownError

_UNKNOWN = "refcomp does not support the operator"
_MAX_DEPTH = 32  # of functions and subgraphs in each other
# Nodes in functions and subgraphs that are converted, each as often as it is called. A few
# functions that call each other twice mean more nodes than any memory holds.
MAX_INNER_NODES = 200_000


@dataclass(slots=True)
class Model:
    """The parts that all graphs of one model share.

    Attributes:
        tensors: the reader of stored tensors.
        functions: (domain, name, overload) -> the FunctionProto that the model defines.
        refusals: the nodes that could not be converted.
        depth: the number of functions and subgraphs around the node at hand.
        inner_nodes: the number of nodes in functions and subgraphs that were converted.
    """

    tensors: TensorReader
    functions: Mapping[tuple[str, str, str], Proto]
    refusals: Refusals
    depth: int = 0
    inner_nodes: int = 0

    def read_constants(
        self, proto: Proto, weights: Mapping[int, memoryview]
    ) -> dict[str, tuple[Array, int]]:
        """Return the stored constants of a GraphProto, each with its element type.

        Args:
            proto: the graph.
            weights: number of an initializer -> its elements, which `proto` does not hold.
        """
        stored: dict[str, tuple[Array, int]] = {}
        for number, tensor in enumerate(proto.initializer):
            array = self.tensors.read(tensor, weights.get(number))
            _store(stored, tensor.name, array, tensor.data_type)
        for sparse in proto.sparse_initializer:
            array = self.tensors.read_sparse(sparse)
            _store(stored, sparse.values.name, array, sparse.values.data_type)
        return stored


def _store(
    stored: dict[str, tuple[Array, int]], name: str, array: Array, code: int
) -> None:
    if name in stored:
        raise UserError(
            f"two constants of the model are named {name!r}",
            remedy="the file is damaged: export it again",
        )
    stored[name] = (array, code)


def convert_nodes(model: Model, scope: ValueScope, protos: Iterable[Proto]) -> None:
    """Convert nodes in order. What cannot be converted is noted in `model.refusals`."""
    protos = tuple(protos)
    scope.nodes = scope.nodes or protos
    for proto in protos:
        model.inner_nodes += model.depth > 0
        if model.inner_nodes > MAX_INNER_NODES:
            raise UserError(
                f"the model has more than {MAX_INNER_NODES} nodes in functions and subgraphs",
                why="each call of a function counts",
                remedy="export the model without functions, or with fewer calls",
            )
        _NodeReader(model, scope, proto).convert()


class _LostError(Exception):
    """A subgraph has nodes that could not be converted, as was noted."""


def _check_operators(model: Model, scope: ValueScope, graph: Proto) -> None:
    """Note the nodes of a graph whose operators are unknown. Nothing is converted."""
    for proto in graph.node:
        reader = _NodeReader(model, scope, proto)
        if not reader.is_known():
            model.refusals.add(reader.title, _UNKNOWN, proto.name or proto.op_type)
        for attribute in proto.attribute:
            if attribute.HasField("g"):
                _check_operators(model, scope, attribute.g)


class _NodeReader:
    """A reader of one node."""

    def __init__(self, model: Model, scope: ValueScope, proto: Proto) -> None:
        self.model = model
        self.scope = scope
        self.proto = proto
        self.domain = standard(proto.domain)
        self.title = f"{self.domain}.{proto.op_type}".lstrip(".")
        self.version = scope.versions.get(self.domain, 0)
        self.converted: set[str] = set()  # names of attributes that are graphs

    def convert(self) -> None:
        """Convert the node, or note why that is not possible."""
        self._check_names()
        try:
            is_lost = any(map(self.scope.is_lost, filter(None, self.proto.input)))
            self._convert(only_checked=is_lost)
        except Unsupported as error:
            self.model.refusals.add(self.title, error.what, self._name())
            self.scope.lost.update(filter(None, self.proto.output))
        except _LostError:
            self.scope.lost.update(filter(None, self.proto.output))
            for attribute in self.proto.attribute:
                is_new = attribute.name not in self.converted
                if attribute.HasField("g") and is_new:
                    _check_operators(self.model, self.scope, attribute.g)
        except UserError as error:
            error.where = error.where or f"node {self._name()!r} ({spell(self.title)})"
            raise
        except RecursionError:
            raise UserError(
                "functions or subgraphs of the model are nested too deeply",
                where=f"node {self._name()!r} ({spell(self.title)})",
                remedy="the file is damaged: export it again",
            ) from None

    def is_known(self) -> bool:
        """Return True if the operator has a converter, or is defined by a function."""
        overload = getattr(self.proto, "overload", "")
        if (self.domain, self.proto.op_type, overload) in self.model.functions:
            return True
        schema = self._schema()
        version = self.version if schema is None else schema.since_version
        if find_converter(self.domain, self.proto.op_type, version) is not None:
            return True
        return schema is not None and _has_function(schema)

    def _name(self) -> str:
        return str(self.proto.name or self.proto.op_type)

    def _convert(self, *, only_checked: bool) -> None:
        overload = getattr(self.proto, "overload", "")
        key = (self.domain, self.proto.op_type, overload)
        own = self.model.functions.get(key)
        if own is not None:
            if only_checked:
                self.scope.lost.update(filter(None, self.proto.output))
                return
            self._call(own)
            return
        schema = self._schema()
        version = self.version if schema is None else schema.since_version
        found = find_converter(self.domain, self.proto.op_type, version)
        if schema is None and not (found and found.is_custom):
            self._check_version()
        attributes = self._attributes(schema)
        if only_checked:
            if found is None and (schema is None or not _has_function(schema)):
                raise Unsupported(_UNKNOWN)
            self.scope.lost.update(filter(None, self.proto.output))
            return
        inputs = [
            None if not name else self.scope.value(name) for name in self.proto.input
        ]
        codes = [0 if v is None else self.scope.element_type(v) for v in inputs]
        if schema is not None and not (found and found.is_custom):
            check_signature(schema, len(self.proto.output), inputs, codes)
        refusal = Unsupported(_UNKNOWN)
        if found is not None:
            try:
                self._run(found, schema, version, attributes)
                return
            except Unsupported as error:
                refusal = error
        body = schema_function(schema, self.proto, self.version, inputs, codes)
        if body is None:
            raise refusal
        self._call(body)

    def _schema(self) -> Proto | None:
        """Return the schema of the operator in the model's version; None if there is none."""
        onnx = onnx_package()
        if self.version == 0:
            raise UserError(
                f"the model names no version of the operators of {self.domain or 'ONNX'!r}",
                remedy="the file is damaged: export it again",
            )
        try:
            return onnx.defs.get_schema(self.proto.op_type, self.version, self.domain)
        except Exception:  # onnx's own class, without a base but Exception
            return None

    def _check_version(self) -> None:
        """Raise UserError if another version of the operator set has the operator."""
        onnx = onnx_package()
        if onnx.defs.has(self.proto.op_type, self.domain):
            newest = onnx.defs.get_schema(self.proto.op_type, self.domain)
            raise UserError(
                f"version {self.version} of the operator set lacks {self.title}",
                why=f"the newest form of {self.title} is that of version "
                f"{newest.since_version}",
                remedy="export the model again, with another opset_version",
            )

    def _attributes(self, schema: Proto | None) -> Attributes:
        tensors = self.model.tensors
        return read_attributes(self.proto, schema, tensors.read, tensors.read_sparse)

    def _run(
        self,
        found: Converter,
        schema: Proto | None,
        version: int,
        attributes: Attributes,
    ) -> None:
        """Let a converter add nodes, or a macro if only a run knows what is needed."""
        scope = self.scope
        inputs = tuple(scope.value(name) if name else None for name in self.proto.input)
        codes = [0 if v is None else scope.element_type(v) for v in inputs]
        count = len(self.proto.output)
        types: list[int | None] = [None] * count
        if not found.is_control:  # its converter notes the types
            types = output_types(schema, codes, attributes, count)
        node = OnnxNode(
            scope.builder,
            self.proto.op_type,
            version,
            inputs,
            tuple(self.proto.output),
            attributes,
            _NodeSurroundings(self),
            scope.elements,
        )
        is_direct = found.is_control or STRINGS in types
        is_direct = is_direct or not all(map(_may_defer, filter(None, inputs)))
        has_shapes = all(value is None or value.is_tensor for value in inputs)
        made: Sequence[Value | None]
        if not found.is_control and moves_strings(node):
            made = convert_on_codes(node, self.domain, self.scope.prefix, types)
        elif is_direct or has_shapes:
            if not found.is_control:
                check_reads_strings(node, self.domain)
            try:
                converted = found.convert(node)
                made = [converted] if isinstance(converted, Value) else converted
            except NotKnownError:
                if is_direct:
                    raise Unsupported(
                        "it needs elements that only a run computes"
                    ) from None
                made = defer(node, self.domain, self.scope.prefix, types)
        else:
            made = defer(node, self.domain, self.scope.prefix, types)
        self._keep(made, inputs, types)

    def _keep(
        self,
        made: Sequence[Value | None],
        inputs: Sequence[Value | None],
        types: Sequence[int | None],
    ) -> None:
        """Let the names of the node's outputs stand for the values that were made."""
        scope = self.scope
        renamed: dict[Value, Value] = {}
        for name, value, code in zip(self.proto.output, made, types, strict=False):
            if not name:
                continue
            if value is None:
                raise Unsupported(f"its output {name!r} is used")
            kept = renamed.get(value)
            if kept is None:
                kept = self._named(value, scope.prefix + name, value in inputs)
                renamed[value] = kept
            known = scope.element_type(value)
            scope.add(name, kept)
            is_type = code is not None and ELEMENT_TYPES[code].storage == kept.dtype
            scope.set_element_type(
                kept, code if is_type and code is not None else known
            )
        missing = [name for name in self.proto.output[len(made) :] if name]
        if missing:
            raise Unsupported(f"its output {missing[0]!r} is used")

    def _named(self, value: Value, name: str, is_input: bool) -> Value:
        """Return a value with a name, if it can have the name."""
        if not is_input:
            return self.scope.builder.rename(value, name)
        if not _may_defer(value):
            return value
        dtypes = () if value.is_tensor else (value.dtype,)
        builder = self.scope.builder
        return builder.nodes("identity", [value], names=[name], dtypes=dtypes)[0]

    def _call(self, function: Proto) -> None:
        """Convert the nodes of a function in the place of the node."""
        scope = self.scope
        self._check_call(function)
        versions = {standard(one.domain): one.version for one in function.opset_import}
        made = next(filter(None, self.proto.output), "")
        prefix = f"{scope.prefix}{self.proto.name or made or self.proto.op_type}/"
        inner = ValueScope(scope.builder, {**scope.versions, **versions}, None, prefix)
        given = [scope.value(name) if name else None for name in self.proto.input]
        for place, name in enumerate(function.input):
            value = given[place] if place < len(given) else None
            inner.add(name, value)
            if value is not None:
                inner.set_element_type(value, scope.element_type(value))
        with self._deeper():
            nodes = [bound_node(one, self.proto, function) for one in function.node]
            convert_nodes(self.model, inner, nodes)
        for name, outer in zip(function.output, self.proto.output, strict=False):
            if not outer:
                continue
            if inner.is_lost(name):
                scope.lost.add(outer)
                continue
            value = inner.value(name) if inner.knows(name) else None
            if value is None:
                raise UserError(f"its function does not make {name!r}")
            kept = self._named(value, scope.prefix + outer, value in given)
            scope.add(outer, kept)
            scope.set_element_type(kept, inner.element_type(value))

    def _check_call(self, function: Proto) -> None:
        """Raise UserError if the node has more inputs or outputs than its function."""
        given = len(self.proto.input), len(self.proto.output)
        taken = len(function.input), len(function.output)
        if given[0] > taken[0]:
            raise UserError(f"its function takes {taken[0]} inputs, not {given[0]}")
        if given[1] > taken[1]:
            raise UserError(f"its function returns {taken[1]} values, not {given[1]}")

    def subgraph(
        self, proto: Proto, inputs: Sequence[tuple[NodeType, int]]
    ) -> Subgraph:
        """Return a graph of an attribute, given the types of its inputs."""
        graphs = [one for one in self.proto.attribute if one.HasField("g")]
        self.converted |= {one.name for one in graphs if one.g == proto}
        if len(proto.input) != len(inputs):
            raise UserError(
                f"its graph {proto.name!r} takes {len(proto.input)} inputs, not {len(inputs)}"
            )
        builder = FoldingBuilder(proto.name or "body", self.scope.builder)
        scope = ValueScope(builder, self.scope.versions, self.scope)
        stored = self.model.read_constants(proto, {})
        for info, (kind, code) in zip(proto.input, inputs, strict=True):
            value = builder.input(info.name, kind.dtype, kind.shape, kind.kind)
            scope.add(info.name, value)
            scope.set_element_type(value, code)
        for name, (array, code) in stored.items():
            if not scope.defines(name):
                scope.add_constant(name, array, code)
        refused = self.model.refusals.count
        with self._deeper():
            convert_nodes(self.model, scope, proto.node)
        is_lost = any(scope.is_lost(output.name) for output in proto.output)
        if is_lost or self.model.refusals.count > refused:
            raise _LostError
        outputs = [scope.output(output.name) for output in proto.output]
        codes = tuple(scope.element_type(value) for value in outputs)
        return Subgraph(builder.finish(outputs), tuple(scope.captured), codes)

    def part(self, inputs: Mapping[str, Value], output: str) -> Subgraph:
        """Return the part of the graph that computes `output` from other values."""
        builder = FoldingBuilder("part")
        scope = ValueScope(builder, self.scope.versions, self.scope)
        # A node of the part may ask for another part.
        scope.nodes = self.scope.nodes
        for name, outer in inputs.items():
            value = builder.input(name, outer.dtype, outer.shape, outer.kind)
            scope.add(name, value)
            scope.set_element_type(value, self.scope.element_type(outer))
        with self._deeper():
            nodes = needed_nodes(self.scope.nodes, inputs, output)
            convert_nodes(self.model, scope, nodes)
        if scope.is_lost(output):
            raise _LostError
        made = scope.output(output)
        code = scope.element_type(made)
        return Subgraph(builder.finish([made]), tuple(scope.captured), (code,))

    def _deeper(self) -> _NestingLevel:
        return _NestingLevel(self.model)

    def _check_names(self) -> None:
        """Raise UserError unless the inputs are made before, and the outputs are new."""
        for name in filter(None, self.proto.input):
            if not self.scope.knows(name):
                raise UserError(
                    f"node {self._name()!r} reads {name!r}, which nothing before it makes",
                    remedy="the file is damaged, or its nodes are out of order: export it again",
                )
        for name in filter(None, self.proto.output):
            if self.scope.defines(name):
                raise UserError(
                    f"two nodes of the model make {name!r}",
                    remedy="the file is damaged: export it again",
                )


class _NestingLevel:
    """A level of nesting, which is left again at the end of a `with` statement."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __enter__(self) -> None:
        if self.model.depth >= _MAX_DEPTH:
            raise RecursionError
        self.model.depth += 1

    def __exit__(self, *error: object) -> None:
        self.model.depth -= 1


@dataclass(frozen=True, slots=True)
class _NodeSurroundings:
    """The model around a node."""

    reader: _NodeReader

    def element_type(self, value: Value) -> int:
        return self.reader.scope.element_type(value)

    def set_element_type(self, value: Value, code: int) -> None:
        self.reader.scope.set_element_type(value, code)

    def subgraph(
        self, proto: object, inputs: Sequence[tuple[NodeType, int]]
    ) -> Subgraph:
        return self.reader.subgraph(proto, inputs)

    def part(self, inputs: Mapping[str, Value], output: str) -> Subgraph:
        return self.reader.part(inputs, output)


def _may_defer(value: Value) -> bool:
    """Return True for a tensor of numbers, which a macro may read."""
    return not NodeType.of(value).is_container and value.dtype.kind != "string"


def _has_function(schema: Proto) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)
