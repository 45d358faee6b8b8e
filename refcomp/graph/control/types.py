"""The types of graph values, and which values may be given where a type is declared."""

from __future__ import annotations

from typing import NamedTuple

from refcomp.foundation.dtype import STRING, DType, as_dtype
from refcomp.graph.dims import Shape
from refcomp.graph.graph import Value, ValueKind, type_to_text


class NodeType(NamedTuple):
    """The type of a value: its dtype, its shape, and what it holds (see `Value`)."""

    dtype: DType
    shape: Shape
    kind: ValueKind = ValueKind.TENSOR

    @classmethod
    def of(cls, value: Value) -> NodeType:
        """Return the type of `value`."""
        return cls(value.dtype, value.shape, value.kind)

    @property
    def is_container(self) -> bool:
        """Return True for a sequence or an optional."""
        return self.kind not in (ValueKind.TENSOR, ValueKind.UNSHAPED)

    def __str__(self) -> str:
        return type_to_text(*self)

    def fits(self, taken: NodeType) -> bool:
        """Return True if a value of this type may be given where `taken` is declared.

        A tensor fits where an unshaped or an optional one is declared, and a sequence where an
        optional one is.
        """
        if self == taken:
            return True
        return self.dtype == taken.dtype and self.kind in _FITTING.get(taken.kind, ())

    def joined(self, other: NodeType) -> NodeType | None:
        """Return the narrowest type that values of both types fit; None if there is none."""
        wider = (
            self,
            other,
            unshaped(self.dtype),
            NodeType(self.dtype, (), ValueKind.OPTIONAL),
        )
        return next((t for t in wider if self.fits(t) and other.fits(t)), None)


# kind that is declared -> the kinds that fit it
_FITTING = {
    ValueKind.UNSHAPED: (ValueKind.TENSOR,),
    ValueKind.OPTIONAL: (ValueKind.TENSOR, ValueKind.UNSHAPED),
    ValueKind.OPTIONAL_SEQUENCE: (ValueKind.SEQUENCE,),
}


def unshaped(dtype: DType) -> NodeType:
    """Return the type of a tensor whose shape only a run determines."""
    return NodeType(dtype, (), ValueKind.UNSHAPED)


def element_dtype(text: str) -> DType:
    """Return the dtype that a text means in a graph, which may be strings."""
    return STRING if text == str(STRING) else as_dtype(text)
