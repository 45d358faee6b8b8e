"""Peers: other computations of a graph's values, and how their arrays belong to compiled values.

A peer such as ONNX Runtime has an array for each value of the graph that was read from a model. The
compiled graph has other nodes: passes fold, fuse and change layouts. A value that keeps its name
keeps its meaning, so a compiled value belongs to the value of its name. Where `choose_layout` put
channels last, it added `.nhwc` to the name, and the peer's array is transposed. Where
`block_channels` put them in blocks of 16, it added `.nchw16c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.graph.graph import Array, Graph, GraphNode, Value, spell
from refcomp.oracle.floats.error_bounds import Bounded
from refcomp.runtime.arrays.ndarray import NDArray
from refcomp.topi.convolution.conv2d_nchwc import block_channels

# The ends of the names that choose_layout and block_channels give.
_SUFFIX = re.compile(r"\.(nhwc|nchw(?P<block>\d+)c)$")
_TO_LAST = (0, 2, 3, 1)  # [n, c, h, w] -> [n, h, w, c]


@dataclass(frozen=True, slots=True)
class View:
    """The value of the model that a compiled value belongs to.

    Attributes:
        of: the value of the model, whose second axis are the channels if the layouts differ.
        is_last: True if the compiled value has the channels last.
        block: the channels in a block of the compiled value; 0 if it has no blocks.
    """

    of: Value
    is_last: bool = False
    block: int = 0

    def turned(self, array: Array) -> Array:
        """Return an array of `of` in the layout of the compiled value."""
        if self.block:
            return block_channels(array, self.block)
        return array.transpose(_TO_LAST) if self.is_last else array

    def shape(self) -> tuple[Dim, ...] | None:
        """Return the shape of the compiled value; None if `of` cannot have its layout."""
        shape = self.of.shape
        if not self.is_last and not self.block:
            return shape
        if len(shape) != len(_TO_LAST):
            return None
        if self.is_last:
            return tuple(shape[axis] for axis in _TO_LAST)
        batch, channels, *size = shape
        if not isinstance(channels, int) or channels % self.block:
            return None
        return (batch, channels // self.block, *size, self.block)


@dataclass(frozen=True, slots=True)
class Reading:
    """The arrays of a peer that one compiled node is compared with.

    Attributes:
        arrays: compiled value -> array, in its layout: what the node reads and makes, without
            constants.
        inputs: those of them that the node reads.
        nodes: the nodes of the model that make the outputs from the inputs; empty if the peer ran
            the compiled nodes.
        known: the arrays that `nodes` read, by value of the model.
        views: compiled output -> the value of the model that it belongs to.
    """

    arrays: Mapping[Value, Array]
    inputs: tuple[Value, ...]
    nodes: tuple[GraphNode, ...] = ()
    known: Mapping[Value, Array] = field(default_factory=dict)
    views: Mapping[Value, View] = field(default_factory=dict)

    def turned(self, value: Value, bounded: Bounded) -> Bounded:
        """Return the legal values of a value of the model in the layout of `value`."""
        view = self.views[value]
        shape = bounded.value.shape
        return replace(
            bounded,
            value=view.turned(bounded.value),
            error=view.turned(np.broadcast_to(bounded.error, shape)),
            doubtful=view.turned(np.broadcast_to(bounded.doubtful, shape)),
            condition=view.turned(np.broadcast_to(bounded.condition, shape)),
            others=view.turned(np.broadcast_to(bounded.others, shape)),
        )


class Peer:
    """Arrays of another computation, by the names of values.

    Args:
        name: the name of the peer, for reports.
        arrays: name of a value -> its array.
        model: the graph whose values the arrays are, such as `from_onnx` returns; None if they are
            the values of the compiled graph.
    """

    def __init__(
        self, name: str, arrays: Mapping[str, Array], model: Graph | None = None
    ) -> None:
        self.name = name
        self.arrays = arrays
        self.model = model
        self._views: dict[Value, View] = {}  # of the graph below
        self._viewed: Graph | None = None

    def with_inputs(self, inputs: Mapping[str, NDArray]) -> Peer:
        """Return the peer with the arrays of inputs that it does not have."""
        missing = inputs.keys() - self.arrays.keys()
        given = {name: inputs[name].asnumpy() for name in missing}
        peer = Peer(self.name, {**self.arrays, **given}, self.model)
        peer._views = self._views
        peer._viewed = self._viewed
        return peer

    def check_names(self, graph: Graph) -> None:
        """Raise UserError unless the peer has an array for an output of a node of `graph`."""
        views = self._views_of(graph)
        made = [v for node in graph.nodes for v in node.outputs if v in views]
        if any(views[value].of.name in self.arrays for value in made):
            return
        names = [views[value].of.name for value in made]
        near = (did_you_mean(name, names) for name in self.arrays)
        raise UserError(
            f"no array of {self.name} is a value that the model computes",
            where=f"it has {_some(self.arrays)}",
            why=f"the model computes {_some(names)}",
            remedy=next(filter(None, near), "name the arrays as the model does"),
        )

    def reading(self, node: GraphNode, graph: Graph) -> Reading | None:
        """Return the arrays for a node of a compiled graph; None if one is missing.

        Raises:
            UserError: an array has another dtype or shape than its value.
        """
        views = self._views_of(graph)
        inputs = tuple(v for v in node.reads if v not in graph.constants)
        arrays: dict[Value, Array] = {}
        for value in (*inputs, *node.outputs):
            view = views.get(value)
            if view is None or view.of.name not in self.arrays:
                return None
            arrays[value] = view.turned(self._array(view.of))
        if self.model is None:
            return Reading(arrays, inputs)
        found = self._slice(
            [views[v].of for v in node.outputs], [views[v].of for v in inputs]
        )
        if found is None:
            return None
        nodes, known = found
        return Reading(
            arrays,
            inputs,
            nodes=tuple(nodes),
            known=known,
            views={value: views[value] for value in node.outputs},
        )

    def _array(self, value: Value) -> Array:
        array = self.arrays[value.name]
        wanted = to_numpy(value.dtype)
        # numpy reads dtypes that it does not know, such as bfloat16, as raw bytes.
        if array.dtype.kind == wanted.kind == "V" and array.itemsize == wanted.itemsize:
            array = array.view(wanted)
        # Symbolic extents are compared where the arrays meet those of a run.
        extents = zip(value.shape, array.shape, strict=False)
        differs = any(isinstance(dim, int) and dim != extent for dim, extent in extents)
        if array.dtype != wanted or array.ndim != len(value.shape) or differs:
            raise UserError(
                f"the array {spell(value.name)} of {self.name} does not fit",
                where=f"it is {array.dtype}{list(array.shape)}",
                why=f"the model has {value}",
                remedy="give arrays of the same model and of the same inputs",
            )
        return array

    def _slice(
        self, outputs: Sequence[Value], inputs: Sequence[Value]
    ) -> tuple[list[GraphNode], dict[Value, Array]] | None:
        """Return the nodes of the model that make `outputs` from `inputs`, and what they read.

        None if they also read another value that the peer does not determine.
        """
        assert self.model is not None
        needed = set(outputs)
        nodes: list[GraphNode] = []
        for node in reversed(self.model.nodes):
            made = set(node.outputs) - set(inputs)
            if needed & made:
                nodes.append(node)
                needed |= set(node.reads)
        read = {value for node in nodes for value in node.reads}
        made = {value for node in nodes for value in node.outputs}
        known: dict[Value, Array] = {}
        for value in read:
            if value in self.model.constants:
                known[value] = self.model.constants[value]
            elif value in inputs:
                known[value] = self._array(value)
            elif value not in made:
                return None
        # A node that makes an input as well, such as a split, is not computed again.
        return None if made & set(inputs) else (nodes[::-1], known)

    def _views_of(self, graph: Graph) -> dict[Value, View]:
        if self._viewed is not graph:
            self._viewed = graph
            self._views = views_of(graph, graph if self.model is None else self.model)
        return self._views


def views_of(compiled: Graph, model: Graph) -> dict[Value, View]:
    """Return the value of the model that each value of a compiled graph belongs to.

    Values that a pass made for itself, such as packed weights, belong to none.
    """
    if compiled is model:
        return {value: View(value) for value in model.values()}
    named = {value.name: value for value in model.values()}
    views = {}
    for value in compiled.values():
        name = value.name
        suffix = None if name in named else _SUFFIX.search(name)
        of = named.get(name[: suffix.start()] if suffix else name)
        if of is None:
            continue
        view = View(of)
        if suffix is not None:
            block = int(suffix["block"] or 0)
            view = View(of, is_last=not block, block=block)
        if value.dtype == of.dtype and value.shape == view.shape():
            views[value] = view
    return views


def _some(names: Iterable[str]) -> str:
    listed = [spell(name) for name in names]
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more or "no arrays"
