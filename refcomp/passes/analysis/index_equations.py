"""Decides which equalities follow from equations between indices.

Two accesses meet if their indices are equal in each dimension. Facts are known about the
variables in the indices. Three rules simplify the equations until nothing changes:

1. 64 * x + y == 0 with |y| < 64 is x == 0 and y == 0 (digits of a number).
2. v + rest == 0, where v is a variable, defines v.
3. x mod c == y mod c means that x - y is a multiple of c. So x // c - y // c in another
   equation becomes (x - y) / c. If only one multiple of c lies in the range of x - y,
   x - y has this value.

Equations are impossible if the range or the remainders of a sum exclude 0. Arithmetic
that may wrap is not changed (see `refcomp.arith.facts`), so that the answer "not forced"
is always safe.
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
from refcomp.ir.rewrite import same_items

_MAX_ROUNDS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """Two expressions that are equal, or whose equality is to be proved."""

    a: Expr
    b: Expr

    @property
    def difference(self) -> Expr:
        """Left side minus right side, in i64 if their types differ."""
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
    """Return True if both sides of each of `pairs` are equal in each solution.

    A solution fulfils `facts` and all `equations`. The result is also True if there is
    none. All expressions are scalar integers.
    """
    system = _System(facts)
    try:
        system.add(equations)
        system.solve()
        return all(system.is_zero(pair) for pair in pairs)
    except _Impossible:
        return True


class _System:
    """Equations `difference == 0`, and the facts that follow from solved ones."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._open: list[Expr] = []  # the differences
        self._joined: set[int] = set()  # ids of equations that rule 3 has derived

    def add(self, equations: Sequence[Equation]) -> None:
        """Add equations that read no memory: two reads of a place may differ."""
        table = self._facts.table
        for equation in equations:
            difference = equation.difference
            if not table.reads_memory(table.intern(difference)):
                self._open.append(difference)

    def solve(self) -> None:
        """Apply the rules until nothing changes, or raise _Impossible."""
        for _ in range(_MAX_ROUNDS):
            before = [self._simplified(equation) for equation in self._open]
            after: list[Expr] = []
            for equation in before:
                after += self._reduced(equation)
            after += self._congruent(after)
            self._open = after
            if same_items(after, before):
                return

    def is_zero(self, pair: Equation) -> bool:
        """Return True if both sides are known to be equal."""
        total = self._sum(self._simplified(pair.difference))
        return total is not None and total.is_const and total.const == 0

    def _simplified(self, expr: Expr) -> Expr:
        # Twice, as a variable may be defined by another one that was defined after it.
        simplifier = self._facts.simplifier
        return simplifier.representative(simplifier.representative(expr))

    def _sum(self, expr: Expr) -> Sum | None:
        return self._facts.bounds.exact_sum(expr) if is_summable(expr.dtype) else None

    def _reduced(self, equation: Expr) -> list[Expr]:
        """Return equations equivalent to `equation`: parts of it, or itself."""
        total = self._sum(self._simplified(equation))
        if total is None:
            return []
        bounds = self._facts.bounds
        if not bounds.interval_of_sum(total).contains(0):
            raise _Impossible
        if not bounds.modular_of_sum(total).contains(0):
            raise _Impossible
        if total.is_const:
            return []
        parts = self._digits(total)
        if parts is not None:
            return [self._facts.table.build(part, I64) for part in parts]
        return [] if self._define(total) else [equation]

    def _digits(self, total: Sum) -> list[Sum] | None:
        """Return x and y, both 0, if total == base * x + y with |y| < base."""
        bases = {abs(factor) for factor in total.terms.values()}
        for base in sorted(bases - {1}):
            high, low = total.split(base)
            if not high.terms:
                continue
            digit = Interval(1 - base, base - 1)
            # The digit may also be the low part less base, with a carry to the high part.
            for part, carry in ((low, 0), (low.shift(-base), 1)):
                values = self._facts.bounds.interval_of_sum(part)
                if values.lies_in(digit):
                    return [high.shift(carry), part]
        return None

    def _define(self, total: Sum) -> bool:
        """Solve for a variable with the factor 1 or -1, if it occurs only once."""
        table = self._facts.table
        for monomial, factor in sorted(total.terms.items(), reverse=True):
            var = table.expr(monomial[0])
            if len(monomial) > 1 or abs(factor) != 1 or not isinstance(var, Var):
                continue
            rest = total.plus(Sum({monomial: factor}), -1).scale(-factor)
            value = table.build(rest, var.dtype)
            if not free_of(value, var):
                continue
            # The range of the variable is lost with it, unless `value` inherits it.
            facts = self._facts
            values = facts.bounds.interval(var)
            if values.low is not None:
                low = IntImm(values.low, var.dtype)
                facts = facts.assume(LE(low, value))
            if values.high is not None:
                high = IntImm(values.high, var.dtype)
                facts = facts.assume(LE(value, high))
            self._facts = facts.define(var, value)
            return True
        return False

    # Quotients and remainders.

    def _congruent(self, equations: list[Expr]) -> Iterator[Expr]:
        """Yield what follows from x mod c == y mod c.

        x - y is c times the difference of the quotients by c.
        """
        quotients: dict[Hashable, list[Expr]] = {}
        for equation in equations:
            for known, product in self._multiplied(equation):
                quotients.setdefault(self._key(known), []).append(product)
        congruences = [item for e in equations for item in self._remainders(e)]
        for known in congruences:
            found = quotients.get(self._key(known), [])
            if not found:
                difference = Equation(known.a, known.b).difference
                difference = self._simplified(difference)
                multiple = self._only_multiple(difference, known.divisor)
                if multiple is not None:
                    found = [Sub(difference, IntImm(multiple, difference.dtype))]
            for equation in map(self._simplified, found):
                # Else the rounds would not end: a congruence stays true.
                if id(equation) not in self._joined:
                    self._joined.add(id(equation))
                    yield equation

    def _multiplied(self, equation: Expr) -> Iterator[tuple[_Congruence, Expr]]:
        """Yield what an equation with k * (x // c) - k * (y // c) becomes.

        If x and y are congruent modulo c, the equation can be multiplied by c: k * (x - y)
        replaces the quotients. Each yield is a condition x mod c == y mod c, and the
        product.
        """
        table = self._facts.table
        total = self._sum(equation)
        if total is None:
            return
        linear = [monomial for monomial in total.terms if len(monomial) == 1]
        for first, second in permutations(linear, 2):
            factor = total.terms[first]
            if factor + total.terms[second] != 0:
                continue
            a = table.expr(first[0])
            b = table.expr(second[0])
            if not isinstance(a, FloorDiv) or not isinstance(b, FloorDiv):
                continue
            if a.b is not b.b:
                continue
            x = self._sum(a.a)
            y = self._sum(b.a)
            if x is None or y is None:
                continue
            quotients = Sum({first: factor, second: -factor})
            rest = total.plus(quotients, -1)
            product = x.plus(y, -1).scale(factor)
            divisor = as_int(a.b)
            if divisor is not None:
                product = product.plus(rest, divisor)
            elif rest.terms or rest.const:
                continue  # a product with a symbolic divisor is not a sum
            congruence = _Congruence(a.a, b.a, a.b)
            yield congruence, table.build(product, equation.dtype)

    def _key(self, known: _Congruence) -> Hashable:
        """Return a key for congruences whose sides differ by multiples of the divisor."""
        a = self._residue(known.a, known.divisor)
        b = self._residue(known.b, known.divisor)
        return a, b, id(known.divisor)

    def _residue(self, expr: Expr, divisor: Expr) -> Hashable:
        """Return a sum modulo a constant; the identity of any other expression."""
        table = self._facts.table
        total = self._sum(expr)
        c = as_int(divisor)
        if total is None or c is None or c <= 0:
            return id(expr)
        const = total.const
        terms: dict[Monomial, int] = {}
        stack = list(total.terms.items())
        while stack:
            monomial, factor = stack.pop()
            item = table.expr(monomial[0])
            inner: Sum | None = None
            if len(monomial) == 1 and isinstance(item, FloorMod):
                modulus = as_int(item.b)
                # factor * (x mod modulus) is congruent to factor * x if their difference,
                # a multiple of factor * modulus, is a multiple of c.
                if modulus is not None and factor * modulus % c == 0:
                    inner = self._sum(item.a)
            if inner is None:
                terms[monomial] = (terms.get(monomial, 0) + factor) % c
            else:
                const += factor * inner.const
                stack += inner.scale(factor).terms.items()
        nonzero = frozenset(item for item in terms.items() if item[1])
        return nonzero, const % c

    def _remainders(self, equation: Expr) -> Iterator[_Congruence]:
        """Yield what an equation says about remainders.

        The side b of a congruence may be the remainder of a itself.
        """
        table = self._facts.table
        total = self._sum(equation)
        if total is None:
            return
        # x mod c - y mod c == 0
        items: list[Expr] = []
        for monomial in total.terms:
            if len(monomial) == 1:
                items.append(table.expr(monomial[0]))
        is_difference = not total.const and not sum(total.terms.values())
        if is_difference and len(items) == len(total.terms) == 2:
            a, b = items
            if isinstance(a, FloorMod) and isinstance(b, FloorMod) and a.b is b.b:
                yield _Congruence(a.a, b.a, a.b)
        # x mod c + rest == 0
        for monomial, factor in total.terms.items():
            item = table.expr(monomial[0])
            if len(monomial) == 1 and abs(factor) == 1 and isinstance(item, FloorMod):
                rest = total.plus(Sum({monomial: factor}), -1).scale(-factor)
                yield _Congruence(item.a, table.build(rest, item.dtype), item.b)

    def _only_multiple(self, difference: Expr, divisor: Expr) -> int | None:
        """Return the only multiple of `divisor` that `difference` can be.

        Return None if there are several; raise _Impossible if there is none.
        """
        bounds = self._facts.bounds
        total = self._sum(difference)
        c = as_int(divisor)
        if total is None or c is None or c <= 0:
            return None
        remainders = bounds.modular_of_sum(total) + Modular(c, 0)
        if not remainders.contains(0):
            raise _Impossible
        values = bounds.interval_of_sum(total)
        if values.low is None or values.high is None:
            return None
        first = -(-values.low // c) * c  # rounded up
        last = values.high // c * c
        if first > last:
            raise _Impossible
        return first if first == last else None
