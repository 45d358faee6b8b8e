"""Compute the panels of a constant matrix without a padded copy of the matrix.

`pack_matrices` lays out a matrix by four nodes. The matrix is transposed, and its columns are
padded to whole panels. They are divided into panels, which become the first axis. Only the last
panel has padding. So all others are a view of the matrix, and are copied once.

Ensures: the same elements as those of the nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from refcomp.graph.constants import aligned_empty, copy_elements
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.passes.pointwise import is_plain

_PANELS_FIRST = (1, 0, 2)  # [depth, count, width] -> [count, depth, width]


@dataclass(frozen=True, slots=True)
class PaddedPanels:
    """The nodes that pad a matrix [depth, columns] and divide it into panels.

    Attributes:
        pad: adds columns.
        split: makes [depth, count, width] of them.
        turn: makes [count, depth, width] of that.
        width: the columns of a panel.
    """

    pad: GraphNode
    split: GraphNode
    turn: GraphNode
    width: int

    @property
    def matrix(self) -> Value:
        """Return the value that is padded."""
        return self.pad.reads[0]

    def compute(self, matrix: Array) -> Array:
        """Return the panels of a matrix, aligned."""
        depth, columns = matrix.shape
        whole, rest = divmod(columns, self.width)
        panels = aligned_empty((whole + 1, depth, self.width), matrix.dtype)
        first = matrix[:, : whole * self.width].reshape(depth, whole, self.width)
        copy_elements(panels[:-1], first.transpose(_PANELS_FIRST))
        panels[-1, :, :rest] = matrix[:, whole * self.width :]
        panels[-1, :, rest:] = 0
        return panels


def find_padded_panels(
    graph: Graph, nodes: Collection[GraphNode]
) -> list[PaddedPanels]:
    """Return the panels that some nodes of a graph make, and whose steps nothing else reads."""
    readers = graph.readers()
    makers = {value: node for node in nodes for value in node.outputs}
    found = []
    for turn in nodes:
        split = _only_source(turn, "transpose", makers)
        pad = None if split is None else _only_source(split, "reshape", makers)
        if split is None or pad is None or pad.operator != "pad" or not is_plain(pad):
            continue
        inner = (*pad.outputs, *split.outputs)
        is_inner = all(len(readers[v]) == 1 and v not in graph.outputs for v in inner)
        width = _width(pad, split, turn)
        if is_inner and width:
            found.append(PaddedPanels(pad, split, turn, width))
    return found


def _only_source(
    node: GraphNode, operator: str, makers: Mapping[Value, GraphNode]
) -> GraphNode | None:
    """Return the maker of the input of a plain node of this operator; None for other nodes."""
    if node.operator != operator or not is_plain(node):
        return None
    return makers.get(node.reads[0])


def _width(pad: GraphNode, split: GraphNode, turn: GraphNode) -> int:
    """Return the columns of a panel; 0 if the nodes make no panels, or add a whole panel."""
    shape = split.outputs[0].shape
    matrix = pad.reads[0].shape
    if len(shape) != 3 or len(matrix) != 2 or turn.attributes["axes"] != _PANELS_FIRST:
        return 0
    depth, columns = matrix
    width = shape[2]
    assert isinstance(columns, int) and isinstance(width, int)  # as of any constant
    spare = -columns % width if width else 0
    # Attributes with their default value are left out: zeros, and no other mode.
    is_zero = pad.attributes.keys() == {"pad_before", "pad_after"}
    is_behind = (
        pad.attributes.get("pad_before") == (0, 0)
        and pad.attributes.get("pad_after") == (0, spare)
        and shape[0] == depth
    )
    return width if spare and is_zero and is_behind else 0
