"""What all IR nodes share: how a node class is made, and which of its fields hold children.

A node is a frozen, slotted dataclass with `eq=False`: identity is equality, so that nodes can be
keys of memo tables; structural comparison is a function (`refcomp.ir.structure`). A field whose
annotation is `Expr`, `Stmt`, a tuple of either (or of `Requirement`), or either with `| None`,
holds children; every traversal is built on that one fact (see `child_fields`). What a node binds,
and where, is told by four attributes of its class (see `Node`), so that comparison and verification
need not know it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform


class Node:
    """Root of the node hierarchy: Node > Expr | Stmt > one class per node.

    `by_identity` is true for what can be bound (Var, Buffer): its identity is the object, and its
    `name` is a label. `binds` names the attributes whose variables and buffers the node binds in
    its child fields `binds_in`; `names_bound` names fields that hold the names of some of these.
    """

    __slots__ = ()
    __match_args__: ClassVar[
        tuple[str, ...]
    ] = ()  # the fields, in order; set by `node`
    by_identity: ClassVar[bool] = False
    binds: ClassVar[tuple[str, ...]] = ()
    binds_in: ClassVar[tuple[str, ...]] = ("body",)
    names_bound: ClassVar[tuple[str, ...]] = ()
    # Set by refcomp.ir.printer, which needs every node class and so cannot stand above.
    describe: ClassVar[Callable[[Any], str]] = object.__repr__

    def __repr__(self) -> str:
        return Node.describe(self)


_N = TypeVar("_N")

_CHILD_ANNOTATIONS = {
    "Expr",
    "Stmt",
    "Expr | None",
    "Stmt | None",
    "tuple[Expr, ...]",
    "tuple[Stmt, ...]",
    "tuple[Requirement, ...]",
}


_CHILD_FIELDS: dict[type[Any], tuple[str, ...]] = {}
_DATA_FIELDS: dict[type[Any], tuple[str, ...]] = {}
# What reads all children of a node of a class; `refcomp.ir.rewrite.children` is how it is asked.
CHILD_READERS: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {}
# The classes whose fields hold one child each and nothing else, as those of all operators.
MADE_OF_NODES: set[type[Any]] = set()


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_N]) -> type[_N]:
    """Class decorator: makes a node class (see the module docstring)."""
    made: Any = dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)
    if not all(isinstance(f.type, str) for f in fields(made)):
        raise TypeError(
            f"{cls.__name__}: its module needs `from __future__ import annotations`"
        )
    names = tuple(f.name for f in fields(made) if f.type in _CHILD_ANNOTATIONS)
    _CHILD_FIELDS[made] = names
    _DATA_FIELDS[made] = tuple(
        f.name for f in fields(made) if f.name not in (*names, "origin")
    )
    CHILD_READERS[made] = _reader(
        names, [f.type for f in fields(made) if f.name in names]
    )
    if all(f.type in ("Expr", "Stmt") for f in fields(made)):
        MADE_OF_NODES.add(made)
    return cast(type[_N], made)


def _reader(
    names: tuple[str, ...], annotations: list[Any]
) -> Callable[[Any], tuple[Any, ...]]:
    """What reads all children: every traversal does, so that the usual fields have their own."""
    if not names:
        return lambda item: ()
    is_plain = all(annotation in ("Expr", "Stmt") for annotation in annotations)
    if len(names) == 1:
        read = attrgetter(*names)
        if is_plain:
            return lambda item: (read(item),)
        return read if annotations[0].startswith("tuple") else _reads_any(names)
    return attrgetter(*names) if is_plain else _reads_any(names)


def _reads_any(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads fields that hold a node, none, or a tuple of them."""

    def read(item: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for name in names:
            value = getattr(item, name)
            if isinstance(value, tuple):
                found += value
            elif value is not None:
                found.append(value)
        return tuple(found)

    return read


def child_fields(cls: type[Any]) -> tuple[str, ...]:
    """Names of the fields that hold child nodes, in order of declaration."""
    return _CHILD_FIELDS[cls]


def data_fields(cls: type[Any]) -> tuple[str, ...]:
    """Names of the other fields that take part in structural equality (all but `origin`)."""
    return _DATA_FIELDS[cls]


def bound_by(item: Node) -> tuple[Any, ...]:
    """The variables and buffers that `item` binds, in order; each is a node."""
    bound: list[Any] = []
    for name in type(item).binds:
        value = getattr(item, name)
        bound.extend(value if isinstance(value, tuple) else (value,))
    return tuple(bound)
