"""Base of all IR nodes: how a node class is made, and which of its fields hold children.

A node is a dataclass with slots and `eq=False`, and its fields cannot be assigned. Identity is
equality, so nodes can be keys of memo tables. Structural comparison is a function
(`refcomp.ir.structure`).

A field holds children if its annotation is `Expr`, `Stmt`, either with `| None`, a tuple of either,
or a tuple of `Requirement`. Every traversal is built on this rule (see `child_fields`). Attributes
of the class say what a node binds, and where (see `Node`). So comparison and verification need no
code for single classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from operator import attrgetter
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

from refcomp.foundation.records import (
    LazyConstructor,
    declaration_of,
    values_of,
    with_slots,
)


class Node:
    """Root of the node hierarchy: Node > Expr | Stmt > one class per node."""

    __slots__ = ()
    # The fields in order; set by `node`.
    __match_args__: ClassVar[tuple[str, ...]] = ()
    # True for nodes that can be bound.
    by_identity: ClassVar[bool] = False
    # The attributes that hold what the node binds.
    binds: ClassVar[tuple[str, ...]] = ()
    # The child fields in which it is bound.
    binds_in: ClassVar[tuple[str, ...]] = ("body",)
    # The fields that hold names of what the node binds.
    names_bound: ClassVar[tuple[str, ...]] = ()
    # Set by refcomp.ir.printer, which needs every node class and so cannot stand above.
    describe: ClassVar[Callable[[Node], str]] = object.__repr__

    def __repr__(self) -> str:
        return Node.describe(self)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    # Copies are made by these two, since nothing can be assigned to a field.
    def __getstate__(self) -> list[object]:
        return [getattr(self, name) for name in self.__match_args__]

    def __setstate__(self, state: list[object]) -> None:
        for name, value in zip(self.__match_args__, state, strict=True):
            object.__setattr__(self, name, value)


class Bindable(Node):
    """A variable or a buffer: other nodes bind it. It is its own identity; `name` is a label."""

    __slots__ = ()
    by_identity = True
    name: str


_N = TypeVar("_N", bound=Node)
# Returns all children of a node of one class.
_Reader = Callable[[Any], tuple[Node, ...]]

_PLAIN_CHILDREN = {"Expr", "Stmt"}
_CHILD_ANNOTATIONS = {
    *_PLAIN_CHILDREN,
    "Expr | None",
    "Stmt | None",
    "tuple[Expr, ...]",
    "tuple[Stmt, ...]",
    "tuple[Requirement, ...]",
}


_DATA_FIELDS: dict[type[Node], tuple[str, ...]] = {}
# For `refcomp.ir.rewrite`. All other code calls `child_fields`, and `children` of that module.
CHILD_FIELDS: dict[type[Node], tuple[str, ...]] = {}
CHILD_READERS: dict[type[Node], _Reader] = {}
STATEMENT_READERS: dict[type[Node], _Reader] = {}
# Classes whose fields hold one child each and nothing else, such as all operators.
MADE_OF_NODES: set[type[Node]] = set()


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_N]) -> type[_N]:
    """Make a node class of `cls` (a class decorator; see the module docstring).

    Raises TypeError if the annotations of its module are not texts.
    """
    declared = declaration_of(cls)
    annotations = declared.annotations
    if not all(isinstance(text, str) for text in annotations.values()):
        raise TypeError(
            f"{cls.__name__}: its module needs `from __future__ import annotations`"
        )
    made = with_slots(cls, declared, {"__init__": LazyConstructor(declared)})
    children = tuple(n for n, text in annotations.items() if text in _CHILD_ANNOTATIONS)
    CHILD_FIELDS[made] = children
    _DATA_FIELDS[made] = tuple(
        name for name in annotations if name not in (*children, "origin")
    )
    CHILD_READERS[made] = _reader({name: annotations[name] for name in children})
    statements = {
        name: annotations[name] for name in children if "Stmt" in annotations[name]
    }
    STATEMENT_READERS[made] = _reader(statements)
    if _PLAIN_CHILDREN.issuperset(annotations.values()):
        MADE_OF_NODES.add(made)
    return made


def _reader(annotations: dict[str, str]) -> _Reader:
    """Return a function that reads the child fields `annotations`, by name.

    Every traversal calls it for each node, so frequent kinds of fields have faster functions.
    """
    if not annotations:
        return lambda item: ()
    names = tuple(annotations)
    *first_kinds, last_kind = annotations.values()
    if not _PLAIN_CHILDREN.issuperset(first_kinds):
        return _reader_of_any(values_of(names))
    if last_kind in _PLAIN_CHILDREN:
        return values_of(names)
    if not first_kinds and last_kind.startswith("tuple"):
        return attrgetter(names[0])
    if first_kinds and last_kind.endswith("None"):
        return _reader_of_optional(values_of(names[:-1]), attrgetter(names[-1]))
    return _reader_of_any(values_of(names))


def _reader_of_optional(
    read_first: _Reader, read_last: Callable[[Any], Node | None]
) -> _Reader:
    """Return a function that reads fields of which the last one may be None."""

    def read(item: Node) -> tuple[Node, ...]:
        last = read_last(item)
        return read_first(item) if last is None else (*read_first(item), last)

    return read


def _reader_of_any(read_fields: Callable[[Any], tuple[Any, ...]]) -> _Reader:
    """Return a function that reads fields which hold a node, None, or a tuple of nodes."""

    def read(item: Node) -> tuple[Node, ...]:
        found: list[Node] = []
        for value in read_fields(item):
            if isinstance(value, tuple):
                found += value
            elif value is not None:
                found.append(value)
        return tuple(found)

    return read


def child_fields(cls: type[Node]) -> tuple[str, ...]:
    """Return the names of the fields that hold child nodes, in order of declaration."""
    return CHILD_FIELDS[cls]


def data_fields(cls: type[Node]) -> tuple[str, ...]:
    """Return the names of the other fields that structural equality compares (all but `origin`)."""
    return _DATA_FIELDS[cls]


def bound_by(item: Node) -> tuple[Bindable, ...]:
    """Return the variables and buffers that `item` binds, in order."""
    bound: list[Bindable] = []
    for name in type(item).binds:
        value = getattr(item, name)
        bound.extend(value if isinstance(value, tuple) else (value,))
    return tuple(bound)
