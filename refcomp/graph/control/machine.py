"""The interface between control operators and the machine that runs them.

There are two machines: one computes by numpy, for `evaluate_graph`; the other runs compiled kernels
(`refcomp.graph.stages`). So each control operator is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Array, Graph


class ShapedTensor(Protocol):
    """A tensor of a run: a numpy array or an NDArray."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""


# Key -> element: a number of Python, or a text.
RunMap = dict[Any, Any]
# A tensor, a map, a sequence of either, or nothing.
RunValue = ShapedTensor | RunMap | tuple[ShapedTensor, ...] | tuple[RunMap, ...] | None


class Machine(Protocol):
    """A machine that runs graphs."""

    def run(self, graph: Graph, inputs: Sequence[RunValue]) -> list[RunValue]:
        """Return the outputs of a graph."""

    def read(self, tensor: ShapedTensor) -> Array:
        """Return the elements of a tensor, on the host."""

    def tensor(self, elements: Array) -> ShapedTensor:
        """Return a tensor with these elements, on the machine."""


def as_tensor(value: RunValue, what: str) -> ShapedTensor:
    """Return `value`, which the types of the graph say is a tensor."""
    assert value is not None and not isinstance(value, tuple | dict), what
    return value


def as_sequence(value: RunValue, what: str) -> tuple[ShapedTensor, ...]:
    """Return `value`, which the types of the graph say is a sequence."""
    assert isinstance(value, tuple), what
    return cast("tuple[ShapedTensor, ...]", value)


def as_map(value: RunValue, what: str) -> RunMap:
    """Return `value`, which the types of the graph say is a map."""
    assert isinstance(value, dict), what
    return value


def read_integer(machine: Machine, value: RunValue, what: str) -> int:
    """Return the integer in a tensor with one element."""
    return int(_single(machine, value, what))


def read_bool(machine: Machine, value: RunValue, what: str) -> bool:
    """Return the bool in a tensor with one element."""
    return bool(_single(machine, value, what))


def _single(machine: Machine, value: RunValue, what: str) -> Array:
    elements = machine.read(as_tensor(value, what))
    if elements.size != 1:
        raise UserError(
            f"{what} is a tensor of shape {list(elements.shape)}, not one element",
            remedy="give a tensor with one element",
        )
    return elements.reshape(())
