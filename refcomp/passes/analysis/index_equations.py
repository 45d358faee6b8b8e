"""Tells what equations between indices force, under facts about the variables in them.

Two accesses meet where their indices are equal, dimension by dimension. The equations are taken
apart by three rules until nothing is left to gain:

- 64 * x + y == 0 with |y| < 64 is x == 0 and y == 0 (digits of a number);
- v + rest == 0, where v is a variable, defines v;
- x mod c == y mod c makes x // c - y // c, where it stands in an equation, (x - y) / c; and it is
  x == y where x - y can be no other multiple of c.

A sum whose range or remainder excludes 0 makes the equations impossible. Arithmetic that may wrap
is left alone (see `refcomp.arith.facts`), so the answer "not forced" is always safe.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from refcomp.arith import Facts, Interval, Modular
from refcomp.arith.intern import free_of
from refcomp.arith.linear import Monomial, Sum, is_summable
from refcomp.foundation.dtype import I64
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, Expr, FloorDiv, FloorMod, IntImm, Sub, Var
from refcomp.ir.promotion import cast

_MOST_ROUNDS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """Two expressions that are equal, or that are asked to be."""

    a: Expr
    b: Expr

    @property
    def difference(self) -> Expr:
        """Left side minus right side, in i64 where their types differ."""
        if self.a.dtype == self.b.dtype:
            return Sub(self.a, self.b)
        return Sub(cast(I64, self.a), cast(I64, self.b))


@dataclass(frozen=True, slots=True, eq=False)
class _Congruence:
    """a mod divisor == b mod divisor."""

    a: Expr
    b: Expr
    divisor: Expr


class _Impossible(Exception):
    """The equations have no solution."""


def forces_equal(
    equations: Sequence[Equation], pairs: Sequence[Equation], facts: Facts
) -> bool:
    """Whether both sides of each pair are equal wherever `facts` and all `equations` hold.

    True where they never hold. All expressions are scalar integers.
    """
    system = _System(facts)
    try:
        system.add(equations)
        system.solve()
        return all(system.is_zero(pair) for pair in pairs)
    except _Impossible:
        return True


class _System:
    """Equations `difference == 0`, and what is known by the ones that are solved."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._open: list[Expr] = []
        self._joined: set[int] = set()

    def add(self, equations: Sequence[Equation]) -> None:
        """Takes up further equations; not those that read memory, as two reads of one place may
        give two values."""
        table = self._facts.table
        differences = [equation.difference for equation in equations]
        self._open += [
            d for d in differences if not table.reads_memory(table.intern(d))
        ]

    def solve(self) -> None:
        """Applies the rules while they gain something. Raises _Impossible."""
        for _ in range(_MOST_ROUNDS):
            before = [self._simplified(equation) for equation in self._open]
            after = [part for equation in before for part in self._reduced(equation)]
            after += self._congruent(after)
            self._open = after
            if len(after) == len(before) and all(map(_is_same, after, before)):
                return

    def is_zero(self, pair: Equation) -> bool:
        """Whether both sides are known to be equal."""
        total = self._sum(self._simplified(pair.difference))
        return total is not None and total.is_const and total.const == 0

    def _simplified(self, expr: Expr) -> Expr:
        # Twice, as a variable may be defined by another one that was defined after it.
        simplifier = self._facts.simplifier
        return simplifier.representative(simplifier.representative(expr))

    def _sum(self, expr: Expr) -> Sum | None:
        return self._facts.bounds.exact_sum(expr) if is_summable(expr.dtype) else None

    def _reduced(self, equation: Expr) -> list[Expr]:
        """What stands for an equation: parts that follow from it, or itself."""
        total = self._sum(self._simplified(equation))
        if total is None:
            return []
        bounds = self._facts.bounds
        is_possible = bounds.interval_of_sum(total).contains(0)
        if not (is_possible and bounds.modular_of_sum(total).contains(0)):
            raise _Impossible
        if total.is_const:
            return []
        parts = self._digits(total)
        if parts is not None:
            return [self._facts.table.build(part, I64) for part in parts]
        return [] if self._define(total) else [equation]

    def _digits(self, total: Sum) -> list[Sum] | None:
        """x and y of total == base * x + y, where |y| < base and so both are 0."""
        for base in sorted({abs(k) for k in total.terms.values()} - {1}):
            high, low = total.split(base)
            for part, carry in ((low, 0), (low.shift(-base), 1)):
                values = self._facts.bounds.interval_of_sum(part)
                if high.terms and values.lies_in(Interval(1 - base, base - 1)):
                    return [high.shift(carry), part]
        return None

    def _define(self, total: Sum) -> bool:
        """Solves for a variable with the factor 1 or -1 that occurs nowhere else in `total`."""
        table = self._facts.table
        for monomial, factor in sorted(total.terms.items(), reverse=True):
            var = table.expr(monomial[0])
            if len(monomial) > 1 or abs(factor) != 1 or not isinstance(var, Var):
                continue
            rest = total.plus(Sum({monomial: factor}), -1).scale(-factor)
            value = table.build(rest, var.dtype)
            if free_of(value, var):
                self._learn(var, value)
                return True
        return False

    def _learn(self, var: Var, value: Expr) -> None:
        values = self._facts.bounds.interval(var)
        if values.low is not None:
            self._facts = self._facts.assume(LE(IntImm(values.low, var.dtype), value))
        if values.high is not None:
            self._facts = self._facts.assume(LE(value, IntImm(values.high, var.dtype)))
        self._facts = self._facts.define(var, value)

    # Quotients and remainders.

    def _congruent(self, equations: list[Expr]) -> Iterator[Expr]:
        """What follows from x mod c == y mod c: x - y is a multiple of c, namely c times the
        difference of the quotients."""
        quotients: dict[Hashable, list[Expr]] = {}
        for equation in equations:
            for key, product in self._multiplied(equation):
                quotients.setdefault(key, []).append(product)
        for known in [
            item for equation in equations for item in self._remainders(equation)
        ]:
            found = quotients.get(self._key(known), [])
            if not found:
                difference = self._simplified(Equation(known.a, known.b).difference)
                multiple = self._only_multiple(difference, known.divisor)
                if multiple is not None:
                    found = [Sub(difference, IntImm(multiple, difference.dtype))]
            for equation in map(self._simplified, found):
                if id(equation) not in self._joined:
                    self._joined.add(id(equation))
                    yield equation

    def _multiplied(self, equation: Expr) -> Iterator[tuple[Hashable, Expr]]:
        """An equation with k * (x // c) - k * (y // c) in it, times c, where x and y have one
        remainder, so that k * (x - y) stands for these; and what says that they have."""
        total, table = self._sum(equation), self._facts.table
        terms = (
            []
            if total is None
            else [(m, k) for m, k in total.terms.items() if len(m) == 1]
        )
        for first, second in permutations(terms, 2):
            a, b = table.expr(first[0][0]), table.expr(second[0][0])
            if (
                first[1] + second[1]
                or not isinstance(a, FloorDiv)
                or not isinstance(b, FloorDiv)
            ):
                continue
            x, y = self._sum(a.a), self._sum(b.a)
            if a.b is not b.b or x is None or y is None or total is None:
                continue
            rest = total.plus(Sum(dict([first, second])), -1)
            product = x.plus(y, -1).scale(first[1])
            if (divisor := as_int(a.b)) is not None:
                product = product.plus(rest, divisor)
            elif rest.terms or rest.const:
                continue
            yield (
                self._key(_Congruence(a.a, b.a, a.b)),
                table.build(product, equation.dtype),
            )

    def _key(self, known: _Congruence) -> Hashable:
        """Return a key that congruences share if their sides differ by multiples of the divisor."""
        divisor = known.divisor
        return (
            self._residue(known.a, divisor),
            self._residue(known.b, divisor),
            id(divisor),
        )

    def _residue(self, expr: Expr, divisor: Expr) -> Hashable:
        """The sum `expr` modulo a constant; of others themselves."""
        total, table = self._sum(expr), self._facts.table
        c = as_int(divisor)
        if total is None or c is None or c <= 0:
            return id(expr)
        const, terms = total.const, dict[Monomial, int]()
        stack = list(total.terms.items())
        while stack:
            monomial, factor = stack.pop()
            item = table.expr(monomial[0])
            inner = None
            if (
                len(monomial) == 1
                and isinstance(item, FloorMod)
                and isinstance(item.b, IntImm)
            ):
                # A remainder by a multiple of c is as good as the number itself.
                inner = self._sum(item.a) if factor * item.b.value % c == 0 else None
            if inner is None:
                terms[monomial] = (terms.get(monomial, 0) + factor) % c
            else:
                const += factor * inner.const
                stack += [(other, factor * k) for other, k in inner.terms.items()]
        return frozenset((monomial, k) for monomial, k in terms.items() if k), const % c

    def _remainders(self, equation: Expr) -> Iterator[_Congruence]:
        """Yield what the equation says about remainders; its side b may be the remainder of a."""
        for a, b in self._equal_remainders(equation):
            yield _Congruence(a.a, b.a, a.b)
        total, table = self._sum(equation), self._facts.table
        for monomial, factor in () if total is None else total.terms.items():
            item = table.expr(monomial[0])
            if len(monomial) == 1 and abs(factor) == 1 and isinstance(item, FloorMod):
                assert total is not None
                rest = total.plus(Sum({monomial: factor}), -1).scale(-factor)
                yield _Congruence(item.a, table.build(rest, item.dtype), item.b)

    def _equal_remainders(self, equation: Expr) -> Iterator[tuple[FloorMod, FloorMod]]:
        """Two remainders by one divisor that are equal."""
        total, table = self._sum(equation), self._facts.table
        if total is None or total.const or len(total.terms) != 2:
            return
        if sum(total.terms.values()) or any(
            len(monomial) > 1 for monomial in total.terms
        ):
            return
        a, b = (table.expr(monomial[0]) for monomial in total.terms)
        if isinstance(a, FloorMod) and isinstance(b, FloorMod) and a.b is b.b:
            yield a, b

    def _only_multiple(self, difference: Expr, divisor: Expr) -> int | None:
        """The only multiple of `divisor` that `difference` can be, None when there are several."""
        total = self._sum(difference)
        c, bounds = as_int(divisor), self._facts.bounds
        if total is None or c is None or c <= 0:
            return None
        if not (bounds.modular_of_sum(total) + Modular(c, 0)).contains(0):
            raise _Impossible
        values = bounds.interval_of_sum(total)
        if values.low is None or values.high is None:
            return None
        first, last = -(-values.low // c) * c, values.high // c * c
        if first > last:
            raise _Impossible
        return first if first == last else None


def _is_same(a: Expr, b: Expr) -> bool:
    return a is b
