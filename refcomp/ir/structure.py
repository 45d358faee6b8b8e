"""Structural comparison and hashing of IR nodes, up to renaming of the names they bind.

Two nodes are equal if they have the same class, equal data and equal children. A bound variable or
buffer equals the one that is bound at the same place on the other side, whatever their names are.
A free one equals itself only. Floats are compared by their bits: 0.0 differs from -0.0, and a NaN
equals a NaN. `origin` takes no part. The node classes say which fields bind, and where
(`refcomp.ir.node`). Data that are not nodes are compared by `==` if their class defines equality
of values, and by identity otherwise.

Neither function recurses, so deep trees are safe. Each visits a shared subtree once in each scope,
so the time grows with the number of distinct nodes.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from refcomp.ir.node import Bindable, Node, bound_by, child_fields, data_fields


def structurally_equal(a: Node, b: Node) -> bool:
    """Return True if `a` and `b` are the same up to renaming of bound names (module docstring)."""
    return _Comparison().run(a, b)


def structural_hash(root: Node) -> int:
    """Return a number that structurally equal nodes share, for use within this process only."""
    return _Hashing().run(root)


class _Scopes:
    """The open scopes of one tree, with a number for each name that is bound in them.

    A result for a subtree holds as long as no name in it changes its meaning. So the results of a
    scope are dropped when it ends, and `enter` reports names that had a meaning before.
    """

    def __init__(self) -> None:
        self._numbers: dict[Node, int] = {}  # of names that are bound now
        self._free: set[Node] = set()  # names that were met while not bound
        # for each open scope: its names, and their numbers before it (None: not bound)
        self._outer: list[list[tuple[Node, int | None]]] = []

    def enter(self, names: Iterable[Node], numbers: Iterable[int]) -> bool:
        """Bind `names` to `numbers`. Return True if one of them had a meaning before."""
        outer: list[tuple[Node, int | None]] = []
        for name, number in zip(names, numbers, strict=True):
            outer.append((name, self._numbers.get(name)))
            self._numbers[name] = number
        self._outer.append(outer)
        return any(number is not None or name in self._free for name, number in outer)

    def leave(self) -> None:
        """End the innermost scope."""
        for name, number in reversed(self._outer.pop()):
            if number is None:
                del self._numbers[name]
            else:
                self._numbers[name] = number

    def number_of(self, name: Node) -> int | None:
        """Return the number of a bound name, None for a free one."""
        number = self._numbers.get(name)
        if number is None:
            self._free.add(name)
        return number


class _Comparison:
    """A walk over two trees at once, with an explicit stack of steps in place of recursion."""

    def __init__(self) -> None:
        self._left = _Scopes()
        self._right = _Scopes()
        self._serial = itertools.count()
        # ids of pairs that are equal, or are being compared
        self._done: set[tuple[int, int]] = set()
        # for each open scope, the pairs that were added to `_done` in it
        self._done_in: list[list[tuple[int, int]]] = [[]]
        # the last step is taken first; False ends the walk
        self._steps: list[Callable[[], bool]] = []

    def run(self, a: Node, b: Node) -> bool:
        self._steps.append(partial(self._compare, a, b))
        while self._steps:
            step = self._steps.pop()
            if not step():
                return False
        return True

    def _compare(self, a: object, b: object) -> bool:
        if isinstance(a, tuple):
            if not isinstance(b, tuple) or len(a) != len(b):
                return False
            self._push_pairs(a, b)
            return True
        if not isinstance(a, Node):
            return _key(a) == _key(b)
        if not isinstance(b, Node) or type(a) is not type(b):
            return False
        if a.by_identity:
            number = self._left.number_of(a)
            if number != self._right.number_of(b):
                return False
            return number is not None or a is b
        pair = (id(a), id(b))
        if pair in self._done:
            return True
        self._done.add(pair)
        self._done_in[-1].append(pair)
        return self._compare_fields(a, b)

    def _compare_fields(self, a: Node, b: Node) -> bool:
        inner, outer = _fields(type(a))
        if inner:
            self._steps.append(self._leave)
            self._push_pairs(_values(a, inner), _values(b, inner))
            self._steps.append(partial(self._enter, a, b))
        self._push_pairs(_values(a, outer), _values(b, outer))
        return _positions_of_names(a) == _positions_of_names(b)

    def _push_pairs(self, xs: tuple[object, ...], ys: tuple[object, ...]) -> None:
        pairs = zip(reversed(xs), reversed(ys), strict=True)
        self._steps.extend(partial(self._compare, x, y) for x, y in pairs)

    def _enter(self, a: Node, b: Node) -> bool:
        names_a = bound_by(a)
        names_b = bound_by(b)
        if list(map(type, names_a)) != list(map(type, names_b)):
            return False
        # Both sides get the same numbers, so that equal numbers mean the same binding.
        numbers = list(itertools.islice(self._serial, len(names_a)))
        is_left_stale = self._left.enter(names_a, numbers)
        is_right_stale = self._right.enter(names_b, numbers)
        if is_left_stale or is_right_stale:
            self._done.clear()
        self._done_in.append([])
        for x, y in zip(names_a, names_b, strict=True):
            fields = _fields_but_name(type(x))
            self._push_pairs(_values(x, fields), _values(y, fields))
        return True

    def _leave(self) -> bool:
        self._left.leave()
        self._right.leave()
        self._done.difference_update(self._done_in.pop())
        return True


class _Hashing:
    """A walk in postorder: hashes lie on `_results` until the hash of their parent replaces them.

    The number of a bound name depends on what binds it, and not on the depth of that node. So a
    shared subtree has one hash wherever it stands.
    """

    def __init__(self) -> None:
        self._scopes = _Scopes()
        self._known: dict[int, int] = {}  # id of a node -> its hash
        # for each open scope, the ids that were added to `_known` in it
        self._known_in: list[list[int]] = [[]]
        self._results: list[int] = []
        # the last step is taken first
        self._steps: list[Callable[[], None]] = []

    def run(self, root: Node) -> int:
        self._steps.append(partial(self._visit, root))
        while self._steps:
            step = self._steps.pop()
            step()
        return self._results.pop()

    def _visit(self, value: object) -> None:
        if isinstance(value, tuple):
            self._steps.append(partial(self._reduce, len(value)))
            self._push(value)
        elif not isinstance(value, Node):
            self._results.append(_hash_of_data(value))
        elif value.by_identity:
            number = self._scopes.number_of(value)
            result = id(value) if number is None else number
            self._results.append(hash((type(value), result)))
        elif id(value) in self._known:
            self._results.append(self._known[id(value)])
        else:
            self._visit_fields(value)

    def _visit_fields(self, node: Node) -> None:
        inner, outer = _fields(type(node))
        bound = bound_by(node)
        scoped = _values(node, inner)
        for name in bound:
            scoped += _values(name, _fields_but_name(type(name)))
        count = len(outer) + len(scoped)
        self._steps.append(partial(self._reduce_node, node, count))
        if bound:
            self._steps.append(self._leave)
            self._push(scoped)
            self._steps.append(partial(self._enter, node, len(outer)))
        self._push(_values(node, outer))

    def _push(self, values: tuple[object, ...]) -> None:
        self._steps.extend(partial(self._visit, value) for value in reversed(values))

    def _pop_results(self, count: int) -> tuple[int, ...]:
        begin = len(self._results) - count
        popped = tuple(self._results[begin:])
        del self._results[begin:]
        return popped

    def _reduce(self, count: int) -> None:
        self._results.append(hash(self._pop_results(count)))

    def _reduce_node(self, node: Node, count: int) -> None:
        fields = self._pop_results(count)
        result = hash((type(node), _positions_of_names(node), fields))
        self._known[id(node)] = result
        self._known_in[-1].append(id(node))
        self._results.append(result)

    def _enter(self, node: Node, count: int) -> None:
        """Open the scope of `node`; the last `count` results are those of its other fields."""
        bound = bound_by(node)
        outer = tuple(self._results[len(self._results) - count :])
        numbers = [hash((type(node), outer, place)) for place in range(len(bound))]
        if self._scopes.enter(bound, numbers):
            self._known.clear()
        self._known_in.append([])

    def _leave(self) -> None:
        self._scopes.leave()
        for key in self._known_in.pop():
            self._known.pop(key, None)


def _fields(cls: type[Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields in the scope of what `cls` binds, and those outside this scope."""
    known = _FIELDS.get(cls)
    if known is None:
        inner = cls.binds_in if cls.binds else ()
        apart = {*inner, *cls.binds, *cls.names_bound}
        fields = (*data_fields(cls), *child_fields(cls))
        known = (inner, tuple(name for name in fields if name not in apart))
        _FIELDS[cls] = known
    return known


# The results of `_fields`, which the walks need at every node.
_FIELDS: dict[type[Node], tuple[tuple[str, ...], tuple[str, ...]]] = {}


def _fields_but_name(cls: type[Bindable]) -> tuple[str, ...]:
    fields = (*data_fields(cls), *child_fields(cls))
    return tuple(name for name in fields if name != "name")


def _values(node: Node, names: Iterable[str]) -> tuple[object, ...]:
    return tuple([getattr(node, name) for name in names])


def _positions_of_names(node: Node) -> tuple[frozenset[Hashable], ...]:
    """Return, for each field that holds names of bound nodes, the positions of these nodes.

    So a function that writes its second parameter equals another one that does, whatever the
    parameters are called.
    """
    if not node.names_bound:
        return ()
    places: dict[str, int] = {}
    for place, bound in enumerate(bound_by(node)):
        places.setdefault(bound.name, place)
    positions: list[frozenset[Hashable]] = []
    for field in node.names_bound:
        value = getattr(node, field)
        names = (value,) if isinstance(value, str) else value
        positions.append(frozenset(places.get(name, name) for name in names))
    return tuple(positions)


def _key(value: object) -> Hashable:
    """Return what stands for `value` in comparisons: its class with its bits, itself or its id."""
    if isinstance(value, str):
        return value  # a member of a Choice equals its string
    cls = type(value)
    if isinstance(value, float):
        # All NaNs are one: their payloads do not survive printing.
        return cls, "nan" if math.isnan(value) else struct.pack("<d", value)
    equality: object = cls.__hash__
    return cls, id(value) if equality is object.__hash__ else value


def _hash_of_data(value: object) -> int:
    # An unhashable value, such as a list, may equal another one: only the class can be hashed.
    cls = type(value)
    return hash((cls, None)) if cls.__hash__ is None else hash(_key(value))
