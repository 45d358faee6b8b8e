"""The only traversals of the IR: children, map_children, walk, statements_in, substitute.

A rewrite is one recursive function whose last case is `map_children`:

- For all nodes, `map_children(node, recurse)`, in a function made by `rewriter`; or, if only
  nodes of some classes change, `replacer`.
- For statements only, `map_children(stmt, visit, only=Stmt)`, which keeps expressions as they are.
- For expressions only, `map_children(expr, visit, only=Expr)`, mostly made by `memoised`.

A node whose children are unchanged is returned as the same object. `origin` is carried over.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Protocol, TypeVar, cast, overload

from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import BinaryExpr, Expr, Var
from refcomp.ir.node import CHILD_FIELDS, CHILD_READERS, STATEMENT_READERS, Node
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
# The nodes that access the memory of their `buffer`.
ACCESSES = (BufferLoad, Load, AddressOf, BufferStore, Store, AtomicUpdate, Prefetch)


class Rewrite(Protocol):
    """A function that maps expressions to expressions, and statements to statements."""

    @overload
    def __call__(self, node: Expr, /) -> Expr: ...

    @overload
    def __call__(self, node: Stmt, /) -> Stmt: ...

    @overload
    def __call__(self, node: Node, /) -> Node: ...


Visit = Callable[[Any, Node], Node]  # its first argument is a Rewrite


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
    node: _N, function: Callable[[Any], Any], *, only: type[Node] = Node
) -> _N:
    """Return `node` with `function` applied to each child, or to those of the class `only`.

    The result is the same object if nothing changed.
    """
    if isinstance(node, BinaryExpr) and issubclass(Expr, only):
        # The same as below. Most nodes with children are of these classes.
        a = function(node.a)
        b = function(node.b)
        return node if a is node.a and b is node.b else type(node)(a, b)
    changes: dict[str, object] = {}
    for name in CHILD_FIELDS[type(node)]:
        old = getattr(node, name)
        if isinstance(old, only):
            mapped = function(old)
            if mapped is not old:
                changes[name] = mapped
        elif isinstance(old, tuple):
            # A list comprehension is much faster here than a generator.
            items = [function(x) if isinstance(x, only) else x for x in old]
            if not same_items(items, old):
                changes[name] = tuple(items)
    return with_fields(node, **changes) if changes else node


def with_fields(node: _N, **changes: object) -> _N:
    """Return a copy of `node` with some fields replaced; all others are kept, `origin` too."""
    cls = type(node)
    names = cls.__match_args__
    return cls(
        *[changes[name] if name in changes else getattr(node, name) for name in names]
    )


def with_changes(node: _N, **fields: object) -> _N:
    """Return `node` with some fields replaced, or `node` itself if nothing changed.

    A field is unchanged if it is the same object, or a tuple of the same objects.
    """
    changes: dict[str, object] = {}
    for name, value in fields.items():
        old = getattr(node, name)
        if value is old:
            continue
        if (
            isinstance(old, tuple)
            and isinstance(value, tuple)
            and same_items(value, old)
        ):
            continue
        changes[name] = value
    return with_fields(node, **changes) if changes else node


def same_items(first: Sequence[object], second: Sequence[object]) -> bool:
    """Return True if both sequences hold the same objects in the same order."""
    # By identity: == between expressions would build an expression.
    return len(first) == len(second) and all(map(is_, first, second))


def walk(root: Node) -> Iterator[Node]:
    """Yield every node reachable from `root` through children, once each, parents first."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            below = CHILD_READERS[type(node)](node)
            if below:
                stack += below[::-1]


def child_statements(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the children of `stmt` that are statements, in order."""
    return cast(tuple[Stmt, ...], STATEMENT_READERS[type(stmt)](stmt))


def child_expressions(stmt: Stmt) -> list[Expr]:
    """Return the children of `stmt` that are expressions, in order."""
    return [child for child in children(stmt) if isinstance(child, Expr)]


def statements_in(root: Stmt, without: Container[Stmt] = frozenset()) -> Iterator[Stmt]:
    """Yield `root` and the statements in it, parents first, except those in `without`.

    A statement that stands at several places comes as often.
    """
    stack = [root]
    while stack:
        stmt = stack.pop()
        if stmt not in without:
            yield stmt
            stack += child_statements(stmt)[::-1]


def memoised(function: Callable[[Callable[[_A], _R], _A], _R]) -> Callable[[_A], _R]:
    """Return a recursive function that visits each shared subtree once.

    `function(recurse, node)` is called once for each distinct object. `recurse` is the function
    that this call returns.
    """
    done: dict[int, tuple[_A, _R]] = {}

    def recurse(node: _A) -> _R:
        hit = done.get(id(node))
        if hit is None:
            # Storing the node keeps it alive, so that no other node gets its id.
            hit = done[id(node)] = (node, function(recurse, node))
        return hit[1]

    return recurse


def rewriter(visit: Visit) -> Rewrite:
    """Return the rewrite that `visit` defines; most passes are written so.

    `visit(recurse, node)` returns the replacement of `node`. Its last case is
    `map_children(node, recurse)`. Shared subtrees are visited once.
    """
    # Python has no type for "maps Expr to Expr, and Stmt to Stmt"; `visit` must keep this rule.
    return cast(Rewrite, memoised(visit))


def replacer(replacements: Mapping[type[Node], Callable[[Any], Node]]) -> Rewrite:
    """Return the rewrite that replaces nodes of some classes, children first.

    `replacements[cls](node)` returns the replacement of a node, whose children are replaced
    already. Shared subtrees are visited once.
    """

    def visit(recurse: Rewrite, node: Node) -> Node:
        made = map_children(node, recurse)
        replace = replacements.get(type(made))
        return made if replace is None else replace(made)

    return rewriter(visit)


def substitute(node: _N, replacements: Mapping[Var, Expr]) -> _N:
    """Return `node` with free variables replaced.

    Bound variables keep their names: each is bound once, so no replacement can be captured.
    """
    if not replacements:
        return node

    def visit(recurse: Rewrite, item: Node) -> Node:
        if isinstance(item, Var):
            return replacements.get(item, item)
        return map_children(item, recurse)

    return cast(_N, rewriter(visit)(node))


def replace_buffers(node: _N, replacements: Mapping[Buffer, Buffer]) -> _N:
    """Return `node` with some buffers replaced in accesses, allocations and captures."""

    def mapped(items: tuple[Var | Buffer, ...]) -> tuple[Var | Buffer, ...]:
        return tuple(
            replacements.get(i, i) if isinstance(i, Buffer) else i for i in items
        )

    def visit(recurse: Rewrite, item: Node) -> Node:
        item = map_children(item, recurse)
        if isinstance(item, (*ACCESSES, Allocate)):
            target = replacements.get(item.buffer, item.buffer)
            return with_changes(item, buffer=target)
        if isinstance(item, ParallelRegion):
            return with_changes(item, captures=mapped(item.captures))
        if isinstance(item, LaunchKernel):
            return with_changes(item, arguments=mapped(item.arguments))
        return item

    return cast(_N, rewriter(visit)(node))


def variables_in(root: Node) -> tuple[Var, ...]:
    """Return the variables that `root` uses, in order of first appearance.

    A variable that is bound in `root` but not used is not among them.
    """
    if not CHILD_FIELDS[type(root)]:  # most extents and many indices
        return (root,) if isinstance(root, Var) else ()
    # A list comprehension is faster than a generator.
    return tuple([item for item in walk(root) if isinstance(item, Var)])


def buffers_in(root: Node) -> tuple[Buffer, ...]:
    """Return the buffers that `root` reads or writes, in order of first appearance."""
    found: dict[Buffer, None] = {}
    for item in walk(root):
        if isinstance(item, ACCESSES):
            found[item.buffer] = None
        if isinstance(item, LaunchKernel):
            buffers = [arg for arg in item.arguments if isinstance(arg, Buffer)]
            found.update(dict.fromkeys(buffers))
    return tuple(found)
