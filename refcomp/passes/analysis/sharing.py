"""Finds the subexpressions of a function that are evaluated more than once.

Each expression gets a number by its structure: equal expressions have equal numbers. A
*place* is where expressions are evaluated: a statement, or a part of an expression. A
part is a place of its own if it may not be evaluated (a branch of if_then_else), or if it
sees a name of its own (the body of a let).

Integer arithmetic that reads no memory is *pure*, and equal wherever it stands. Any other
expression has a separate number in each statement, since memory may change between two.
`Sharing.decide` gives each place its lets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from refcomp.ir import expr as ir
from refcomp.ir.buffer import AddressOf, Load
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node, child_fields, data_fields
from refcomp.ir.rewrite import children

# Lets of pure arithmetic in one place. A chain of lets is as deep as it is long.
MAX_LETS = 100
_IMPURE = (Load, ir.Call, ir.PureExtern, ir.Let, ir.IfThenElseExpr)


class LetScope:
    """A place where expressions are evaluated.

    Attributes:
        parent: the place around it, None for a statement.
        part: for a part of an expression, the expression's number and the field.
        depth: the number of places around it.
        lets: the numbers to bind in this place, with their names.
        barriers: the places that are parts of expressions evaluated here.
        memo: the ids of the impure expressions of this statement, with their numbers.
    """

    __slots__ = ("barriers", "depth", "lets", "memo", "parent", "part")

    def __init__(
        self, parent: LetScope | None, part: tuple[int, str] | None = None
    ) -> None:
        self.parent = parent
        self.part = part
        self.depth: int = parent.depth + 1 if parent else 0
        self.lets: list[tuple[int, Var]] = []
        self.barriers: dict[tuple[int, str], LetScope] = {}
        # The parts of a statement's expressions see the same memory as the statement.
        self.memo: dict[int, int] = parent.memo if parent and part else {}

    def barrier(self, number: int, field: str) -> LetScope:
        """Return the place of the part `field` of expression `number`, evaluated here."""
        key = (number, field)
        if key not in self.barriers:
            self.barriers[key] = LetScope(self, key)
        return self.barriers[key]


# Field of a choice -> the place of this branch, and the uses inside.
_Branches = dict[str, tuple[LetScope, list[LetScope]]]


def barrier_fields(expr: Expr) -> tuple[str, ...]:
    """Return the fields of `expr` that are places of their own."""
    return _BARRIER_FIELDS.get(type(expr), ())


_BARRIER_FIELDS: dict[type[Expr], tuple[str, ...]] = {
    ir.IfThenElseExpr: ("true_value", "false_value"),
    ir.Let: ("body",),
}


class Sharing:
    """The numbers of expressions, the places that use them, and the lets.

    `rebound` are variables that several statements bind.
    """

    def __init__(self, rebound: Iterable[Var]) -> None:
        self._impure_vars = set(rebound)
        # Class, data, children (and statement, if impure) -> number.
        self._numbers: dict[tuple[object, ...], int] = {}
        # By number: an expression, the numbers of its children, and the places that
        # evaluate it.
        self._exprs: list[Expr] = []
        self._children: list[list[int]] = []
        self._is_pure: list[bool] = []
        self._uses: list[list[LetScope]] = []
        self._pure_memo: dict[int, int] = {}  # id of an expression -> number

    def use(self, expr: Expr, place: LetScope) -> None:
        """Record that the statement `place` evaluates `expr`."""
        self._uses[self.number(expr, place)].append(place)

    def number(self, expr: Expr, place: LetScope) -> int:
        """Return the number of `expr`, evaluated in `place`."""
        known = self._pure_memo.get(id(expr))
        if known is None:
            known = place.memo.get(id(expr))
        return self._assign_number(expr, place) if known is None else known

    def expr(self, number: int) -> Expr:
        """Return an expression of that number."""
        return self._exprs[number]

    def decide(self) -> bool:
        """Give the places their lets. Return True if there are any."""
        found = False
        # Parents have greater numbers than their children. So all uses of an expression
        # are known before it is its turn.
        for number in reversed(range(len(self._exprs))):
            places = self._uses[number]
            if len(places) > 1 and self._may_bind(number):
                num_uses = len(places)
                places = self._bind(number, places)
                found |= len(places) < num_uses
            for place in places:
                self._use_children(number, place)
            self._uses[number] = []
        return found

    def _use_children(self, number: int, place: LetScope) -> None:
        """Record that `place` evaluates the children of expression `number`."""
        expr = self._exprs[number]
        apart = barrier_fields(expr)
        if not apart:
            for child in self._children[number]:
                self._uses[child].append(place)
            return
        # Each field of such an expression holds one child.
        fields = child_fields(type(expr))
        for child, field in zip(self._children[number], fields, strict=True):
            inner = place.barrier(number, field) if field in apart else place
            self._uses[child].append(inner)

    # Numbers.

    def _assign_number(self, expr: Expr, place: LetScope) -> int:
        if isinstance(expr, ir.Let):
            # The name is known only in the body of the let.
            self._impure_vars.add(expr.var)
        numbers = [self.number(child, place) for child in children(expr)]
        if isinstance(expr, Var):
            is_pure = expr not in self._impure_vars
        else:
            is_pure = not isinstance(expr, _IMPURE) and not expr.dtype.is_float
        is_pure = is_pure and all(map(self._is_pure.__getitem__, numbers))
        statement = None if is_pure else id(place.memo)
        key = (type(expr), *_data_of(expr), *numbers, statement)
        number = self._numbers.setdefault(key, len(self._exprs))
        if number == len(self._exprs):
            self._exprs.append(expr)
            self._children.append(numbers)
            self._is_pure.append(is_pure)
            self._uses.append([])
        memo = self._pure_memo if is_pure else place.memo
        memo[id(expr)] = number
        return number

    # Decisions.

    def _may_bind(self, number: int) -> bool:
        expr = self._exprs[number]
        plain = expr.value if isinstance(expr, ir.Broadcast) else expr
        if isinstance(plain, ir.IntImm | ir.FloatImm):
            return False
        # Back ends must see a ramp in its access, and an address or a text in its call.
        if isinstance(expr, Var | ir.Ramp | AddressOf | ir.TextImm):
            return False
        # Likewise a vector of indices: it may be a ramp plus a scalar.
        is_index = expr.dtype.is_int and expr.dtype.lanes > 1
        return not (is_index and self._is_pure[number])

    def _bind(self, number: int, uses: list[LetScope]) -> list[LetScope]:
        """Return the places that evaluate `number` once lets bind it.

        Several uses in one tree of places become one.
        """
        trees: dict[int, list[LetScope]] = {}
        for place in uses:
            root = place
            while root.parent is not None:
                root = root.parent
            trees.setdefault(id(root), []).append(place)
        places: list[LetScope] = []
        for tree in trees.values():
            places += self._bind_in_tree(number, tree)
        return places

    def _bind_in_tree(self, number: int, uses: list[LetScope]) -> list[LetScope]:
        if len(uses) < 2:
            return uses
        outer = _innermost_around(uses)
        if _is_certain(outer, uses):
            if self._is_pure[number] and len(outer.lets) >= MAX_LETS:
                return uses
            name = Var("t", self._exprs[number].dtype)
            outer.lets.append((number, name))
            return [outer]
        groups: dict[int, list[LetScope]] = {}
        for place in uses:
            inner = place  # directly inside `outer`, on the way to `place`
            while inner.parent is not outer:
                assert inner.parent is not None
                inner = inner.parent
            groups.setdefault(id(inner), []).append(place)
        places: list[LetScope] = []
        for group in groups.values():
            places += self._bind_in_tree(number, group)
        return places


def _data_of(expr: Expr) -> list[object]:
    if isinstance(expr, ir.FloatImm):
        return [expr.value.hex(), expr.dtype]  # 0.0 is not -0.0
    if isinstance(expr, Var):
        return [id(expr)]
    if isinstance(expr, ir.BinaryExpr):
        return []
    data: list[object] = []
    for name in data_fields(type(expr)):
        value = getattr(expr, name)
        data.append(id(value) if isinstance(value, Node) else value)
    return data


def _innermost_around(places: list[LetScope]) -> LetScope:
    """Return the innermost place that all of `places` lie in."""
    outer = places[0]
    for place in places[1:]:
        while outer is not place:
            if outer.depth >= place.depth:
                assert outer.parent is not None, (
                    "the root of a tree holds all its places"
                )
                outer = outer.parent
            else:
                assert place.parent is not None
                place = place.parent
    return outer


def _is_certain(outer: LetScope, uses: list[LetScope]) -> bool:
    """Return True if each evaluation of `outer` reaches one of `uses`.

    A use behind a barrier counts only if the other branch is certain to reach a use, too.
    """
    # Place around a choice and number of the choice -> its branches.
    behind: dict[tuple[int, int], _Branches] = {}
    for place in uses:
        barrier = None  # the outermost one inside `outer` around the use
        inner = place
        while inner is not outer:
            barrier = inner if inner.part else barrier
            assert inner.parent is not None
            inner = inner.parent
        if barrier is None:
            return True
        assert barrier.part is not None
        number, field = barrier.part
        branches = behind.setdefault((id(barrier.parent), number), {})
        _, inside = branches.setdefault(field, (barrier, []))
        inside.append(place)
    for branches in behind.values():
        if branches.keys() != {"true_value", "false_value"}:
            continue
        if all(_is_certain(barrier, inner) for barrier, inner in branches.values()):
            return True
    return False


def count_bindings(vars_bound: Iterable[Var]) -> list[Var]:
    """Return the variables that occur more than once."""
    return [var for var, count in Counter(vars_bound).items() if count > 1]
