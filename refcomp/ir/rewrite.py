"""The only traversals of the IR: children, map_children, walk, substitute.

A rewrite is one recursive function whose last case is `map_children`:

- of all nodes, `map_children(node, recurse)`, made by `rewriter`;
- of statements alone, `map_children(stmt, visit, only=Stmt)`, which leaves expressions as they are;
- of expressions alone, `map_children(expr, visit, only=Expr)`, mostly made by `memoised`.

A node whose children come back unchanged is returned as the same object; `origin` is carried over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Protocol, TypeVar, cast, overload

from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import CHILD_READERS, Node, child_fields
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    BufferStore,
    LaunchKernel,
    ParallelRegion,
    Prefetch,
    Stmt,
    Store,
)

_N = TypeVar("_N", bound=Node)
_C = TypeVar("_C", bound=Node)
_A = TypeVar("_A")
_R = TypeVar("_R")
_ACCESSES = (BufferLoad, Load, AddressOf, BufferStore, Store, AtomicUpdate, Prefetch)


class Rewrite(Protocol):
    """Turns expressions into expressions, and statements into statements."""

    @overload
    def __call__(self, node: Expr, /) -> Expr: ...

    @overload
    def __call__(self, node: Stmt, /) -> Stmt: ...

    @overload
    def __call__(self, node: Node, /) -> Node: ...


Visit = Callable[[Rewrite, Node], Node]


@overload
def children(node: Expr) -> tuple[Expr, ...]: ...


@overload
def children(node: Node) -> tuple[Node, ...]: ...


def children(node: Node) -> tuple[Node, ...]:
    """Return the child expressions and statements of `node`, in order of declaration."""
    return CHILD_READERS[type(node)](node)


@overload
def map_children(node: _N, function: Rewrite) -> _N: ...


@overload
def map_children(node: _N, function: Callable[[_C], _C], *, only: type[_C]) -> _N: ...


def map_children(
    node: _N, function: Callable[[Any], Node], *, only: type[Node] = Node
) -> _N:
    """Return `node` with `function` applied to each child, or to those of the class `only`.

    The result is the same object when nothing changed.
    """
    changes: dict[str, object] = {}
    for name in child_fields(type(node)):
        old = getattr(node, name)
        fresh = old
        if isinstance(old, only):
            fresh = function(old)
        elif isinstance(old, tuple):
            fresh = _map_items(old, function, only)
        if fresh is not old:
            changes[name] = fresh
    return with_fields(node, **changes) if changes else node


def _map_items(
    items: tuple[Node, ...], function: Callable[[Any], Node], only: type[Node]
) -> tuple[Node, ...]:
    mapped = tuple(
        [function(item) if isinstance(item, only) else item for item in items]
    )
    return items if all(map(is_, mapped, items)) else mapped


def with_fields(node: _N, **changes: Any) -> _N:
    """A copy of `node` with some fields replaced; `origin` and the rest are carried over."""
    cls = type(node)
    names = cls.__match_args__
    return cls(
        *[changes[name] if name in changes else getattr(node, name) for name in names]
    )


def with_changes(node: _N, **fields: Any) -> _N:
    """Return `node` with some fields replaced, or `node` itself if nothing changed.

    A field is unchanged if it is the same object, or a tuple of the same objects.
    """
    changes: dict[str, object] = {}
    for name, value in fields.items():
        old = getattr(node, name)
        if value is old:
            continue
        if isinstance(old, tuple) and same_items(value, old):
            continue
        changes[name] = value
    return with_fields(node, **changes) if changes else node


def same_items(first: Sequence[object], second: Sequence[object]) -> bool:
    """Return True if both sequences hold the same objects in the same order."""
    # By identity: == between expressions would build an expression.
    return len(first) == len(second) and all(map(is_, first, second))


def walk(root: Node) -> Iterator[Node]:
    """Every node reachable from `root` through children, once each, parents first."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(children(node)))


def memoised(function: Callable[[Callable[[_A], _R], _A], _R]) -> Callable[[_A], _R]:
    """Return a recursive function that visits each shared subtree once.

    `function(recurse, node)` is called once for each distinct object; `recurse` is the result.
    """
    done: dict[int, tuple[_A, _R]] = {}

    def recurse(node: _A) -> _R:
        hit = done.get(id(node))
        if hit is None:
            # The node is kept beside its result, so that its id cannot be given to another.
            hit = done[id(node)] = (node, function(recurse, node))
        return hit[1]

    return recurse


def rewriter(visit: Visit) -> Rewrite:
    """Return a rewrite whose recursion is `visit`: every pass is written as one.

    `visit(recurse, node)` returns what takes the place of `node`; its last case is
    `map_children(node, recurse)`. Shared subtrees are visited once.
    """
    # No type of `visit` says that it makes expressions of expressions, statements of statements.
    return cast(Rewrite, memoised(cast(Any, visit)))


def substitute(node: _N, replacements: Mapping[Var, Expr]) -> _N:
    """`node` with free variables replaced. Bound variables are not renamed: they are unique."""
    if not replacements:
        return node

    def visit(recurse: Rewrite, item: Node) -> Node:
        if isinstance(item, Var):
            return replacements.get(item, item)
        return map_children(item, recurse)

    return cast(_N, rewriter(visit)(node))


def replace_buffers(node: _N, replacements: Mapping[Buffer, Buffer]) -> _N:
    """`node` with every access to, and allocation and capture of, some buffers redirected."""

    def visit(recurse: Rewrite, item: Node) -> Node:
        item = map_children(item, recurse)
        if isinstance(item, (*_ACCESSES, Allocate)):
            target = replacements.get(item.buffer)
            return item if target is None else with_fields(item, buffer=target)
        if isinstance(item, ParallelRegion):
            return with_changes(item, captures=_replaced(item.captures, replacements))
        if isinstance(item, LaunchKernel):
            return with_changes(item, arguments=_replaced(item.arguments, replacements))
        return item

    return cast(_N, rewriter(visit)(node))


def _replaced(
    items: tuple[Var | Buffer, ...], replacements: Mapping[Buffer, Buffer]
) -> tuple[Var | Buffer, ...]:
    if not any(isinstance(item, Buffer) and item in replacements for item in items):
        return items
    return tuple(replacements.get(i, i) if isinstance(i, Buffer) else i for i in items)


def variables_in(root: Node) -> tuple[Var, ...]:
    """The variables used in `root` (not those only bound), in order of first appearance."""
    return tuple(item for item in walk(root) if isinstance(item, Var))


def buffers_in(root: Node) -> tuple[Buffer, ...]:
    """The buffers that `root` reads or writes, in order of first appearance."""
    found: dict[Buffer, None] = {}
    for item in walk(root):
        if isinstance(item, _ACCESSES):
            found[item.buffer] = None
        if isinstance(item, LaunchKernel):
            found.update(
                (arg, None) for arg in item.arguments if isinstance(arg, Buffer)
            )
    return tuple(found)
