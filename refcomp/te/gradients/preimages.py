"""The iterations that read a given element of a tensor: index equations, solved for axes.

    reads     A[y * 2 + k]     with y in [0, 8) and k in [0, 3)
    element   A[a]
    solved    y = (a - k) // 2     where (a - k) % 2 == 0 and 0 <= y < 8; k remains

An axis of large extent is solved for first, so that loops over short axes remain.

- Digits: `y * 4 + k == a` with k in [0, 4) means that y is `a // 4` and k is `a % 4`.
- Quotients and remainders, which reshaping makes, are solved by a further axis: `i // 4 == a` means
  that i is `a * 4 + r` for some r in [0, 4).
- An equation that cannot be solved stays as a condition, such as one whose index is an element of
  another tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from refcomp.arith import Facts, prove, simplify
from refcomp.arith.guards import linear
from refcomp.arith.interval import Interval
from refcomp.arith.prove import interval
from refcomp.foundation.dtype import I64
from refcomp.ir.constants import as_int
from refcomp.ir.expr import EQ, GE, LT, Expr, FloorDiv, FloorMod, IntImm, Sub, Var
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import IterVar

_UNKNOWN_EXTENT = 1 << 62  # a symbolic one counts as large


@dataclass(frozen=True, slots=True)
class Preimage:
    """The iterations that read an element: all values of `remaining` where `conditions` hold.

    Attributes:
        values: the axes that are solved for, as expressions of the element and of `remaining`.
        remaining: the axes to go over.
        conditions: bool expressions, all of which must hold.
    """

    values: dict[Var, Expr]
    remaining: tuple[IterVar, ...]
    conditions: tuple[Expr, ...]


def find_preimage(
    indices: Sequence[Expr],
    element: Sequence[Var],
    shape: Sequence[Expr],
    axes: Sequence[IterVar],
) -> Preimage:
    """Return the iterations of `axes` in which `indices` are `element`.

    Args:
        indices: expressions of the axes, one for each dimension of a tensor.
        element: a variable for each dimension.
        shape: the extents of the tensor.
        axes: the axes of the loops that read, whose ranges do not depend on each other.
    """
    facts = Facts()
    extents = [*shape, *(axis.extent for axis in axes)]
    for symbol in {var for extent in extents for var in variables_in(extent)}:
        facts = facts.nonnegative(symbol)
    for var, extent in zip(element, shape, strict=True):
        facts = facts.bind(var, IntImm(0, I64), extent)
    for axis in axes:
        facts = facts.bind(axis.var, axis.minimum, axis.extent)
    solver = _Solver(facts, {axis.var: axis for axis in axes})
    for axis in axes:
        if as_int(axis.extent) == 1:
            solver.set_value(axis.var, axis.minimum)
    solver.solve(list(zip(indices, element, strict=True)))
    return solver.found()


_Equation = tuple[Expr, Expr]  # an expression of axes, and what it equals


@dataclass(slots=True)
class _Solver:
    facts: Facts
    unsolved: dict[Var, IterVar]
    values: dict[Var, Expr] = field(default_factory=dict)
    conditions: list[Expr] = field(default_factory=list)

    def solve(self, equations: list[_Equation]) -> None:
        while equations:
            equations = [self._turned(a, b) for a, b in equations]
            if self._split_digits(equations):
                continue
            place, var = self._best(equations)
            if var is not None:
                self._solve_for(var, *equations.pop(place))
                continue
            for place, (left, right) in enumerate(equations):
                opened = self._opened(left, right)
                if opened is not None:
                    equations[place] = opened
                    break
            else:
                self.conditions += [EQ(left, right) for left, right in equations]
                return

    def set_value(self, var: Var, value: Expr) -> None:
        """Use `value` for the axis from now on."""
        del self.unsolved[var]
        self.values[var] = value

    def found(self) -> Preimage:
        # The value of an axis may name axes that were solved for later.
        values = {var: self._current(value) for var, value in self.values.items()}
        conditions = [self._current(condition) for condition in self.conditions]
        return Preimage(
            values=values,
            remaining=tuple(self.unsolved.values()),
            conditions=tuple(c for c in conditions if not prove(c, self.facts)),
        )

    def _current(self, expr: Expr) -> Expr:
        while any(var in self.values for var in variables_in(expr)):
            expr = substitute(expr, self.values)
        return simplify(expr, self.facts)

    def _turned(self, left: Expr, right: Expr) -> _Equation:
        """Return the equation as it is now, with a side that has unsolved axes on the left."""
        left, right = self._current(left), self._current(right)
        if self._has_unsolved(right) and not self._has_unsolved(left):
            return right, left
        return left, right

    def _best(self, equations: Sequence[_Equation]) -> tuple[int, Var | None]:
        """Return the number of an equation and the axis of the largest extent to solve it for."""
        best: tuple[int, Var | None] = (0, None)
        largest = -1
        for place, (left, _) in enumerate(equations):
            for var in dict.fromkeys(variables_in(left)):
                if var not in self.unsolved:
                    continue
                form = linear(left, var)
                if form is None or form.factor == 0:
                    continue
                extent = as_int(self.unsolved[var].extent)
                size = _UNKNOWN_EXTENT if extent is None else extent
                if size > largest:
                    largest = size
                    best = (place, var)
        return best

    def _solve_for(self, var: Var, left: Expr, right: Expr) -> None:
        """Solve left == right, which is linear in `var`."""
        form = linear(left, var)
        assert form is not None
        axis = self.unsolved[var]
        difference: Expr = right - form.rest if form.factor > 0 else form.rest - right
        step = abs(form.factor)
        value = difference
        if step > 1:
            value = FloorDiv(difference, IntImm(step, I64))
            remainder = FloorMod(difference, IntImm(step, I64))
            self.conditions.append(EQ(remainder, IntImm(0, I64)))
        value = simplify(value, self.facts)
        self.set_value(var, value)
        self.conditions.append(GE(value, axis.minimum))
        self.conditions.append(LT(Sub(value, axis.minimum), axis.extent))

    def _split_digits(self, equations: list[_Equation]) -> bool:
        """Replace an equation of two digits, in place, by one for each; False if there is none."""
        for place, (left, right) in enumerate(equations):
            for var in dict.fromkeys(variables_in(left)):
                form = linear(left, var) if var in self.unsolved else None
                if form is None or form.factor < 2 or not self._has_unsolved(form.rest):
                    continue
                low_digit = interval(form.rest, self.facts)
                if low_digit.lies_in(Interval(0, form.factor - 1)):
                    base = IntImm(form.factor, I64)
                    equations[place] = (form.rest, FloorMod(right, base))
                    equations.append((var, FloorDiv(right, base)))
                    return True
        return False

    def _opened(self, left: Expr, right: Expr) -> _Equation | None:
        """Return an equation without the quotient or remainder at its root; None if there is none.

        A new axis stands for the remainder, or for the quotient.
        """
        if not isinstance(left, FloorDiv | FloorMod):
            return None
        divisor = as_int(left.b)
        if divisor is None or divisor < 1 or not self._has_unsolved(left.a):
            return None
        if isinstance(left, FloorDiv):
            remainder = self._with_axis("r", 0, divisor)
            return left.a, right * divisor + remainder
        values = interval(left.a, self.facts)
        if values.low is None or values.high is None:
            return None
        begin = values.low // divisor
        end = values.high // divisor + 1
        # An element of another tensor may be any number. More quotients than iterations help
        # nothing: the equation stays as a condition.
        if end - begin > self._iterations(left.a):
            return None
        quotient = self._with_axis("q", begin, end)
        # The remainder is within its range for every element that is read.
        self.conditions.append(GE(right, IntImm(0, I64)))
        self.conditions.append(LT(right, IntImm(divisor, I64)))
        return left.a, quotient * divisor + right

    def _with_axis(self, name: str, begin: int, end: int) -> Var:
        axis = reduce_axis((begin, end), name)
        self.facts = self.facts.bind(axis.var, axis.minimum, axis.extent)
        self.unsolved[axis.var] = axis
        return axis.var

    def _iterations(self, expr: Expr) -> int:
        """Return the number of iterations of the unsolved axes in `expr`."""
        count = 1
        for var in set(variables_in(expr)) & set(self.unsolved):
            extent = as_int(self.unsolved[var].extent)
            count *= _UNKNOWN_EXTENT if extent is None else extent
        return count

    def _has_unsolved(self, expr: Expr) -> bool:
        return any(var in self.unsolved for var in variables_in(expr))
