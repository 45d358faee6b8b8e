"""What all IR nodes share: how a node class is made, and which of its fields hold children.

A node is a frozen, slotted dataclass with `eq=False`: identity is equality, so that nodes can be
keys of memo tables; structural comparison is a function (`refcomp.ir.structure`). A field whose
annotation is `Expr`, `Stmt`, a tuple of either, or either with `| None`, holds children; every
traversal is built on that one fact (see `child_fields`).
"""

from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast, dataclass_transform


class Node:
    """Root of the node hierarchy: Node > Expr | Stmt > one class per node."""

    __slots__ = ()


_N = TypeVar("_N")

_CHILD_ANNOTATIONS = {
    "Expr",
    "Stmt",
    "Expr | None",
    "Stmt | None",
    "tuple[Expr, ...]",
    "tuple[Stmt, ...]",
}


_CHILD_FIELDS: dict[type[Any], tuple[str, ...]] = {}


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_N]) -> type[_N]:
    """Class decorator: makes a node class (see the module docstring)."""
    made: Any = dataclass(frozen=True, slots=True, eq=False)(cls)
    _CHILD_FIELDS[made] = tuple(f.name for f in fields(made) if f.type in _CHILD_ANNOTATIONS)
    return cast(type[_N], made)


def child_fields(cls: type[Any]) -> tuple[str, ...]:
    """Names of the fields that hold child nodes, in order of declaration."""
    return _CHILD_FIELDS[cls]


def data_fields(cls: type[Any]) -> tuple[str, ...]:
    """Names of the other fields that take part in structural equality (all but `origin`)."""
    children = _CHILD_FIELDS[cls]
    return tuple(f.name for f in fields(cls) if f.name not in (*children, "origin"))
