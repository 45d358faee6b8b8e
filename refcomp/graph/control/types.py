"""The types of graph values, and which values may be given where a type is declared."""

from __future__ import annotations

from typing import NamedTuple

from refcomp.foundation.dtype import DType
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
        """Return True if a value of this type may be given where `taken` is declared."""
        if self == taken:
            return True
        is_unshaped = taken.kind is ValueKind.UNSHAPED
        is_same = self.dtype == taken.dtype
        return is_same and is_unshaped and self.kind is ValueKind.TENSOR

    def joined(self, other: NodeType) -> NodeType | None:
        """Return the type of values of both types; None if more than their shapes differ."""
        if self == other:
            return self
        tensors = (ValueKind.TENSOR, ValueKind.UNSHAPED)
        if self.dtype != other.dtype:
            return None
        if self.kind in tensors and other.kind in tensors:
            return unshaped(self.dtype)
        return None


def unshaped(dtype: DType) -> NodeType:
    """Return the type of a tensor whose shape only a run determines."""
    return NodeType(dtype, (), ValueKind.UNSHAPED)
