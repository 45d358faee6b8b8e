"""Structural comparison and hashing of IR nodes, up to renaming of the names they bind.

Two nodes are equal when they have the same class, equal data and equal children. A bound variable
or buffer is equal to the one that takes its place on the other side, whatever their names are; a
free one is equal to itself only. Floats are compared by their bits, so that 0.0 is not -0.0, and a
NaN equals a NaN. `origin` takes no part. Which fields bind, and where, is told by the node classes
(`refcomp.ir.node`); data that is no node is compared by `==` where its class defines a value's
equality, and by identity otherwise.

Nothing recurses, so that deep trees are safe, and a subtree that is shared is visited once in
each scope, so that shared trees are not larger than what they are made of.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from refcomp.ir.node import Node, bound_by, child_fields, data_fields


def structurally_equal(a: Node, b: Node) -> bool:
    """Whether `a` and `b` are the same up to renaming of what they bind (module docstring)."""
    return _Comparison().run(a, b)


def structural_hash(root: Node) -> int:
    """A number that structurally equal nodes share; it holds within this process only."""
    return _Hashing().run(root)


class _Scopes:
    """A mark for each bound variable and buffer, which stands for it in place of its name.

    What is known of a subtree holds as long as no name in it gets another meaning. So it is
    forgotten with the scope it was found in, and `enter` says when names had a meaning before.
    """

    def __init__(self) -> None:
        self._marks: dict[Node, int] = {}
        self._free: set[Node] = set()
        self._undo: list[list[tuple[Node, int | None]]] = []

    def enter(self, nodes: Iterable[Node], marks: Iterable[int]) -> bool:
        """Marks `nodes`; true when one of them had a meaning before, bound or free."""
        undo: list[tuple[Node, int | None]] = []
        for node, mark in zip(nodes, marks, strict=True):
            undo.append((node, self._marks.get(node)))
            self._marks[node] = mark
        self._undo.append(undo)
        return any(old is not None or node in self._free for node, old in undo)

    def leave(self) -> None:
        """Forgets the names of the innermost scope."""
        for node, old in reversed(self._undo.pop()):
            if old is None:
                del self._marks[node]
            else:
                self._marks[node] = old

    def mark(self, node: Node) -> int | None:
        """The mark of a bound name, None for a free one."""
        mark = self._marks.get(node)
        if mark is None:
            self._free.add(node)
        return mark


class _Comparison:
    """A walk over two trees at once, with an explicit stack of steps still to take."""

    def __init__(self) -> None:
        self._left = _Scopes()
        self._right = _Scopes()
        self._serial = itertools.count()
        self._done: set[tuple[int, int]] = set()
        self._trail: list[list[tuple[int, int]]] = [[]]
        self._steps: list[tuple[Callable[[Any, Any], bool], Any, Any]] = []

    def run(self, a: Node, b: Node) -> bool:
        self._steps.append((self._compare, a, b))
        while self._steps:
            step, x, y = self._steps.pop()
            if not step(x, y):
                return False
        return True

    def _compare(self, a: Any, b: Any) -> bool:
        if not isinstance(a, Node):
            return self._compare_data(a, b)
        if type(a) is not type(b):
            return False
        if a.by_identity:
            marks = self._left.mark(a), self._right.mark(b)
            return marks[0] == marks[1] and (marks[0] is not None or a is b)
        key = id(a), id(b)
        if key in self._done:
            return True
        self._done.add(key)
        self._trail[-1].append(key)
        return self._compare_fields(a, b)

    def _compare_data(self, a: Any, b: Any) -> bool:
        if not isinstance(a, tuple):
            return type(a) is type(b) and _value(a) == _value(b)
        if not isinstance(b, tuple) or len(a) != len(b):
            return False
        self._push_pairs(a, b)
        return True

    def _compare_fields(self, a: Node, b: Node) -> bool:
        inner, outer = _fields(type(a))
        if type(a).binds:
            self._steps.append((self._leave, a, b))
            self._push_pairs(_values(a, inner), _values(b, inner))
            self._steps.append((self._enter, a, b))
        self._push_pairs(_values(a, outer), _values(b, outer))
        return _bound_positions(a) == _bound_positions(b)

    def _push_pairs(self, xs: tuple[Any, ...], ys: tuple[Any, ...]) -> None:
        pairs = zip(reversed(xs), reversed(ys), strict=True)
        self._steps.extend((self._compare, x, y) for x, y in pairs)

    def _enter(self, a: Node, b: Node) -> bool:
        xs = bound_by(a)
        ys = bound_by(b)
        if [type(x) for x in xs] != [type(y) for y in ys]:
            return False
        marks = list(itertools.islice(self._serial, len(xs)))
        stale = (self._left.enter(xs, marks), self._right.enter(ys, marks))
        if any(stale):
            self._done.clear()
        self._trail.append([])
        for x, y in zip(xs, ys, strict=True):
            self._push_pairs(
                _values(x, _label_free(type(x))), _values(y, _label_free(type(y)))
            )
        return True

    def _leave(self, _a: Node, _b: Node) -> bool:
        self._left.leave()
        self._right.leave()
        self._done.difference_update(self._trail.pop())
        return True


class _Hashing:
    """A walk in postorder: results lie on `_results` until their parent takes them.

    The mark of a bound name depends on what binds it and not on how deep that lies, so that a
    shared subtree has one hash wherever it stands.
    """

    def __init__(self) -> None:
        self._scopes = _Scopes()
        self._known: dict[int, int] = {}
        self._trail: list[list[int]] = [[]]
        self._results: list[int] = []
        self._steps: list[tuple[Callable[[Any], None], Any]] = []

    def run(self, root: Node) -> int:
        self._steps.append((self._visit, root))
        while self._steps:
            step, argument = self._steps.pop()
            step(argument)
        return self._results.pop()

    def _visit(self, value: Any) -> None:
        if isinstance(value, tuple):
            self._push(self._take_tuple, len(value), value)
        elif not isinstance(value, Node):
            self._results.append(_hash_value(value))
        elif value.by_identity:
            mark = self._scopes.mark(value)
            self._results.append(
                hash((type(value), id(value) if mark is None else mark))
            )
        elif id(value) in self._known:
            self._results.append(self._known[id(value)])
        else:
            self._visit_fields(value)

    def _visit_fields(self, node: Node) -> None:
        inner, outer = _fields(type(node))
        values = _values(node, outer)
        bound = bound_by(node)
        labels = tuple(v for b in bound for v in _values(b, _label_free(type(b))))
        scoped = _values(node, inner) + labels
        self._steps.append((self._take_node, (node, len(values) + len(scoped))))
        if bound:
            self._push(self._leave, None, scoped)
            self._steps.append((self._enter, (node, len(values))))
        self._steps.extend((self._visit, value) for value in reversed(values))

    def _push(
        self, after: Callable[[Any], None], argument: Any, values: tuple[Any, ...]
    ) -> None:
        self._steps.append((after, argument))
        self._steps.extend((self._visit, value) for value in reversed(values))

    def _take(self, count: int) -> tuple[int, ...]:
        taken = tuple(self._results[len(self._results) - count :])
        del self._results[len(self._results) - count :]
        return taken

    def _take_tuple(self, count: int) -> None:
        self._results.append(hash(self._take(count)))

    def _take_node(self, argument: tuple[Node, int]) -> None:
        node, count = argument
        result = hash((type(node), _bound_positions(node), self._take(count)))
        self._known[id(node)] = result
        self._trail[-1].append(id(node))
        self._results.append(result)

    def _enter(self, argument: tuple[Node, int]) -> None:
        node, count = argument
        bound = bound_by(node)
        outside = tuple(self._results[len(self._results) - count :])
        marks = [hash((type(node), outside, place)) for place in range(len(bound))]
        if self._scopes.enter(bound, marks):
            self._known.clear()
        self._trail.append([])

    def _leave(self, _argument: None) -> None:
        self._scopes.leave()
        for key in self._trail.pop():
            self._known.pop(key, None)


def _fields(cls: type[Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields in the scope of what `cls` binds, and those outside it."""
    inner = cls.binds_in if cls.binds else ()
    apart = {*inner, *cls.binds, *cls.names_bound}
    outer = (*data_fields(cls), *child_fields(cls))
    return inner, tuple(name for name in outer if name not in apart)


def _label_free(cls: type[Node]) -> tuple[str, ...]:
    """The fields of something bound, without its name."""
    return tuple(f for f in (*data_fields(cls), *child_fields(cls)) if f != "name")


def _values(node: Node, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(getattr(node, name) for name in names)


def _bound_positions(node: Node) -> tuple[frozenset[Hashable], ...]:
    """Which of the bound nodes are meant by the fields that hold their names."""
    if not type(node).names_bound:
        return ()
    places: dict[str, int] = {}
    for place, bound in enumerate(bound_by(node)):
        places.setdefault(bound.name, place)
    return tuple(
        frozenset(places.get(name, name) for name in _strings(getattr(node, field)))
        for field in type(node).names_bound
    )


def _strings(value: str | tuple[str, ...]) -> Iterator[str]:
    yield from (value,) if isinstance(value, str) else value


def _value(value: Any) -> Hashable:
    """What stands for `value` in comparison: bits of a float, itself, or its identity."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    equality: object = type(value).__hash__
    held: Hashable = id(value) if equality is object.__hash__ else value
    return held


def _hash_value(value: Any) -> int:
    return hash((type(value), None if type(value).__hash__ is None else _value(value)))
