"""A builder that computes small constants at once, so that shapes made by nodes become known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.dtype import to_numpy
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.control.operators import find_control
from refcomp.graph.extent_values import (
    MAX_FOLLOWED,
    as_extents,
    follow,
    is_numbers,
)
from refcomp.graph.graph import Array, Graph, GraphNode, Value, is_macro
from refcomp.graph.infer import FUSED
from refcomp.graph.narrow import NARROW
from refcomp.te.tensor import DTypeLike
from refcomp.topi.operator import Attribute, find_operator

# Elements of all inputs, or of all outputs, of a node that is computed while a graph is built.
MAX_FOLDED = 1024


class FoldingBuilder(GraphBuilder):
    """A builder that computes a node of small constants by numpy, and keeps its results.

    It also knows small tensors that are computed from extents (`refcomp.graph.extent_values`).
    """

    def __init__(self, name: str, outer: GraphBuilder | None = None) -> None:
        super().__init__(name, outer)
        # Elements of values that are not constants, but follow from extents.
        self._followed: dict[Value, Array] = {}

    def nodes(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        names: Sequence[str] = (),
        subgraphs: Sequence[Graph] = (),
        *,
        late: Mapping[str, Value] = MappingProxyType({}),
        dtypes: Sequence[DTypeLike] = (),
    ) -> tuple[Value, ...]:
        """Add a node, or the constants that it computes, and return its outputs."""
        made = super().nodes(
            operator, inputs, attributes, names, subgraphs, late=late, dtypes=dtypes
        )
        node = self._nodes[-1]
        if not self._folds(node):
            self._follow(node)
            return made
        self._nodes.pop()
        arrays = [None if v is None else self._constants[v] for v in inputs]
        with np.errstate(all="ignore"):
            results = find_operator(operator).numpy(*arrays, **node.attributes)
        results = results if isinstance(results, list) else [results]
        for value, result in zip(made, results, strict=True):
            kept = np.array(result, to_numpy(value.dtype), order="C")
            kept.flags.writeable = False
            self._constants[value] = kept
        return made

    def _folds(self, node: GraphNode) -> bool:
        is_plain = find_control(node.operator) is None and not node.late
        if not is_plain or node.operator in (FUSED, NARROW) or is_macro(node.operator):
            return False
        if not all(value in self._constants for value in node.reads):
            return False
        # Floats that are made from nothing, such as a window, are for kernels to compute.
        if not node.reads and any(value.dtype.is_float for value in node.outputs):
            return False
        elements = sum(self._constants[value].size for value in node.reads)
        made = 0
        for value in node.outputs:
            extents = [dim for dim in value.shape if isinstance(dim, int)]
            if len(extents) != len(value.shape):
                return False
            made += math.prod(extents)
        return max(elements, made) <= MAX_FOLDED

    def _follow(self, node: GraphNode) -> None:
        """Note the elements of a node's outputs, if they follow from extents."""
        is_plain = find_control(node.operator) is None and not node.late
        if not is_plain or is_macro(node.operator):
            return
        found = follow(node, self._elements_or_none)
        if found is None:
            return
        if all(map(is_numbers, found)):
            self._nodes.pop()
            for value, elements in zip(node.outputs, found, strict=True):
                kept = elements.astype(to_numpy(value.dtype))
                kept.flags.writeable = False
                self._constants[value] = kept
            return
        self._followed.update(zip(node.outputs, found, strict=True))

    def _elements_or_none(self, value: Value) -> Array | None:
        constant = self._constants.get(value)
        if constant is not None and constant.size <= MAX_FOLLOWED:
            return constant.astype(object)
        return self._followed.get(value)

    def extents_in(self, value: Value) -> tuple[Dim, ...] | None:
        """Return the elements of a small tensor of integers, in row-major order.

        An element may have symbols. None stands for elements that only a run computes.

        Example::

            >>> from refcomp.graph.folding import FoldingBuilder
            >>> builder = FoldingBuilder("net")
            >>> x = builder.input("x", "float32", ("N", 4))
            >>> shape = builder.node("shape_of", [x])
            >>> two = builder.constant("two", np.array([2]))
            >>> builder.extents_in(builder.node("multiply", [shape, two]))
            (('mul', 'N', 2), 8)
        """
        elements = self._elements_or_none(value)
        if elements is None or not value.dtype.is_int:
            return None
        return as_extents(elements)

    @property
    def made(self) -> list[GraphNode]:
        """Return the nodes added so far, without those that became constants."""
        return self._nodes

    def elements(self, value: Value) -> Array | None:
        """Return the elements of a constant; None for any other value."""
        return self._constants.get(value)

    def rename(self, value: Value, name: str) -> Value:
        """Return a value of another name that takes the place of `value`.

        It is `value` itself if another value has the name, or if something reads `value`.
        """
        if value.name == name or name in self._names:
            return value
        renamed = replace(value, name=name)
        for place in reversed(range(len(self._nodes))):
            node = self._nodes[place]
            if value in node.reads:
                return value
            if value in node.outputs:
                outputs = tuple(renamed if v is value else v for v in node.outputs)
                self._nodes[place] = replace(node, outputs=outputs)
                self._names.release(value.name)
                self._names.take(name)
                if value in self._followed:
                    self._followed[renamed] = self._followed[value]
                return renamed
        return value  # an input or a constant
