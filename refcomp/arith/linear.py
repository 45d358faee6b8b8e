"""Sums of products: the canonical form of integer expressions.

    Sum = const + coefficient * atom * ... * atom + ...

An atom is a representative (see `intern`) that is not a sum itself: a variable, a division, a load.
Arithmetic on a `Sum` is over the unbounded integers. A Sum always equals its expression modulo
2^bits. It equals the exact integer only if `bounds.is_exact` says so.

`collect` reads a Sum off an expression, in time linear in the number of its distinct nodes. The
method `build` writes a Sum in a stable order. Loop variables come first, in the order of their
binding. Negative terms are subtracted, as in `i * 64 + j + n - 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import gcd
from typing import TypeGuard

from refcomp.arith.intern import ExprTable, Rank
from refcomp.foundation.dtype import DType
from refcomp.foundation.records import record
from refcomp.ir.expr import Add, Expr, IntImm, Mul, Sub
from refcomp.ir.rewrite import children

# Serial numbers of atoms, ascending; a square repeats its atom.
Monomial = tuple[int, ...]
Terms = dict[Monomial, int]  # monomial -> coefficient
Key = tuple[tuple[Monomial, int], ...]  # see `direction`
Additive = Add | Sub | Mul
Parts = tuple[list[Additive], list[Expr]]  # see `addends`
_ADDITIVE = {Add, Sub, Mul}
# Longer products are atoms. Otherwise a chain of n factors would take time quadratic in n.
_MAX_FACTORS = 8


# Not frozen, although no Sum is changed: making a frozen object takes twice the time, and proofs
# make thousands of Sums.
@record(eq=False, frozen=False)
class Sum:
    """const + sum of coefficient * monomial. No coefficient is 0. `terms` must not be changed."""

    terms: Terms = field(default_factory=dict)
    const: int = 0

    @property
    def is_const(self) -> bool:
        """Return True if the sum is a number."""
        return not self.terms

    @property
    def divisor(self) -> int:
        """Return the greatest common divisor of the coefficients; 0 for a number."""
        return gcd(*self.terms.values())

    @property
    def length(self) -> int:
        """Return the number of terms, a constant other than 0 included."""
        return len(self.terms) + bool(self.const)

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """Return self + factor * other."""
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            _accumulate(terms, monomial, coefficient * factor)
        return Sum(terms, self.const + other.const * factor)

    def shift(self, offset: int) -> Sum:
        """Return self + offset."""
        return Sum(self.terms, self.const + offset) if offset else self

    def scale(self, factor: int) -> Sum:
        """Return self * factor."""
        if factor in (0, 1):
            return self if factor else Sum()
        terms = {monomial: k * factor for monomial, k in self.terms.items()}
        return Sum(terms, self.const * factor)

    def times(self, other: Sum) -> Sum:
        """Return self * other, multiplied out."""
        result = Sum()
        for monomial, k in self.terms.items():
            result = result.plus(other.times_monomial(monomial), k)
        if self.const:
            result = result.plus(other, self.const)
        return result

    def times_monomial(self, monomial: Monomial) -> Sum:
        """Return self * monomial."""
        if not monomial:
            return self
        terms = {tuple(sorted(own + monomial)): k for own, k in self.terms.items()}
        if self.const:
            _accumulate(terms, monomial, self.const)
        return Sum(terms)

    def split(self, divisor: int) -> tuple[Sum, Sum]:
        """Return (x, y) with self == divisor * x + y.

        y holds the terms that are not multiples of the divisor, and a constant in [0, |divisor|).
        """
        quotient: Terms = {}
        rest: Terms = {}
        for monomial, k in self.terms.items():
            if k % divisor:
                rest[monomial] = k
            else:
                quotient[monomial] = k // divisor
        const = self.const % abs(divisor)
        multiple = (self.const - const) // divisor
        return Sum(quotient, multiple), Sum(rest, const)

    def split_factor(self, atom: int) -> tuple[Sum, Sum]:
        """Return (x, y) with self == atom * x + y, where y holds the monomials without the atom."""
        quotient = Sum()
        rest = Sum({}, self.const)
        for monomial, k in self.terms.items():
            if atom in monomial:
                place = monomial.index(atom)
                others = monomial[:place] + monomial[place + 1 :]
                quotient = quotient.plus(scaled_monomial(others, k))
            else:
                rest.terms[monomial] = k
        return quotient, rest

    def sole_atom(self) -> int | None:
        """Return the serial number of the atom that this sum is; None if it is not one atom."""
        if self.const or len(self.terms) != 1:
            return None
        ((monomial, k),) = self.terms.items()
        return monomial[0] if k == 1 and len(monomial) == 1 else None

    def equals(self, other: Sum) -> bool:
        """Return True if both sums are the same."""
        return self.const == other.const and self.terms == other.terms


def _accumulate(terms: Terms, monomial: Monomial, coefficient: int) -> None:
    """Add to the coefficient of `monomial`, and drop the term if that becomes 0."""
    total = terms.get(monomial, 0) + coefficient
    if total:
        terms[monomial] = total
    else:
        terms.pop(monomial, None)


def number(value: int) -> Sum:
    """Return the Sum of a number alone."""
    return Sum({}, value)


def scaled_monomial(monomial: Monomial, k: int) -> Sum:
    """Return the Sum k * monomial; that of a number if the monomial is empty."""
    return Sum({monomial: k}) if monomial else Sum({}, k)


def direction(total: Sum) -> tuple[Key, int]:
    """Return (key, k) such that the terms of `total` are k * key.

    All multiples of a sum have the same key, whatever their constants. So facts about one of them
    are found for the others. `total` must have a term.
    """
    if len(total.terms) == 1:
        ((monomial, k),) = total.terms.items()
        return ((monomial, 1),), k
    items = sorted(total.terms.items())
    factor = total.divisor if items[0][1] > 0 else -total.divisor
    return tuple([(monomial, k // factor) for monomial, k in items]), factor


def is_summable(dtype: DType) -> bool:
    """Return True if values of `dtype` have Sums: scalar integers."""
    return dtype.lanes == 1 and dtype.is_int


def is_additive(expr: Expr) -> TypeGuard[Additive]:
    """Return True for an inner node of a sum: + or -, or * by a constant."""
    cls = type(expr)
    if cls not in _ADDITIVE or not is_summable(expr.dtype):
        return False
    if not isinstance(expr, Mul):
        return True
    return isinstance(expr.a, IntImm) or isinstance(expr.b, IntImm)


def addends(root: Expr) -> Parts:
    """Return the inner nodes of the sum `root`, and its leaves.

    Inner nodes come before their operands, leaves in order of appearance. Each node is listed once,
    however often it is used.
    """
    inner: list[Additive] = []
    leaves: list[Expr] = []
    seen: set[int] = set()
    begun: list[Additive] = []  # inner nodes some of whose operands are not done
    # None: the operands of the last node in `begun` are done.
    stack: list[Expr | None] = [root]
    while stack:
        expr = stack.pop()
        if expr is None:
            inner.append(begun.pop())
        elif id(expr) not in seen:
            seen.add(id(expr))
            if is_additive(expr):
                begun.append(expr)
                stack += (None, expr.b, expr.a)
            else:
                leaves.append(expr)
    inner.reverse()
    return inner, leaves


def collect(root: Expr, leaf: Callable[[Expr], Sum], parts: Parts | None = None) -> Sum:
    """Return the Sum of `root`.

    Args:
        root: an expression of a scalar integer type.
        leaf: returns the Sum of each leaf.
        parts: the result of `addends(root)`, if the caller has it already.
    """
    inner, leaves = addends(root) if parts is None else parts
    # By node: the coefficient that all paths from the root add up to.
    factors = {id(root): 1}
    limit = 1 << root.dtype.bits
    for expr in inner:
        k = factors.pop(id(expr))
        for operand, factor in _weighted_operands(expr):
            total = factors.get(id(operand), 0) + k * factor
            # Nested products by constants would otherwise make numbers of unbounded length.
            factors[id(operand)] = total if -limit < total < limit else total % limit
    terms: Terms = {}
    const = 0
    for part in leaves:
        k = factors.get(id(part), 0)
        total_leaf = leaf(part)
        const += k * total_leaf.const
        for monomial, coefficient in total_leaf.terms.items():
            _accumulate(terms, monomial, k * coefficient)
    return wrapped(Sum(terms, const), root.dtype)


def _weighted_operands(expr: Additive) -> tuple[tuple[Expr, int], ...]:
    if isinstance(expr, Mul):
        if isinstance(expr.b, IntImm):
            return ((expr.a, expr.b.value),)
        assert isinstance(expr.a, IntImm)
        return ((expr.b, expr.a.value),)
    return (expr.a, 1), (expr.b, 1 if isinstance(expr, Add) else -1)


def wrapped(total: Sum, dtype: DType) -> Sum:
    """Return `total` with numbers that `dtype` cannot hold reduced modulo 2^bits.

    Small negative numbers are kept, also for unsigned types: `x - 1` is exact more often than
    `x + 255`.
    """
    numbers = (total.const, *total.terms.values())
    if max(map(abs, numbers)) <= dtype.max_value:
        return total
    terms: Terms = {}
    for monomial, k in total.terms.items():
        reduced = _reduced(k, dtype)
        if reduced:
            terms[monomial] = reduced
    return Sum(terms, _reduced(total.const, dtype))


def _reduced(value: int, dtype: DType) -> int:
    if -dtype.max_value <= value <= dtype.max_value:
        return value
    value %= 1 << dtype.bits
    return value - (1 << dtype.bits) if value > dtype.max_value else value


def multiply(a: Sum, b: Sum) -> Sum | None:
    """Return the product of two sums; None if a monomial has too many factors.

    At least one of the sums has at most one term.
    """
    if a.length > 1:
        a, b = b, a
    product = b.scale(a.const) if a.is_const else a.times(b)
    longest = max(map(len, product.terms), default=0)
    return None if longest > _MAX_FACTORS else product


class SumTable(ExprTable):
    """A table of representatives, and of the Sums of those that are simplified."""

    def __init__(self) -> None:
        super().__init__()
        self._sums: dict[int, Sum] = {}
        self._addends: dict[int, Parts] = {}
        # dtype, constant and terms of a Sum -> its expression
        self._built: dict[tuple[DType, int, frozenset[tuple[Monomial, int]]], Expr] = {}

    def addends(self, expr: Additive) -> Parts:
        """Return the inner nodes and the leaves of the sum that a representative is."""
        found = self._addends.get(id(expr))
        if found is None:
            found = self._addends[id(expr)] = addends(expr)
        return found

    def parts(self, expr: Expr) -> Sequence[Expr]:
        """Return the leaves of a sum, the children of any other representative."""
        return self.addends(expr)[1] if is_additive(expr) else children(expr)

    def atom(self, expr: Expr) -> Sum:
        """Return the Sum that is one times a representative."""
        return Sum({(self.serial(expr),): 1})

    def sum_of(self, expr: Expr) -> Sum:
        """Return the Sum of a simplified integer representative, as `build` wrote it."""
        found = self._sums.get(id(expr))
        if found is None:
            if is_additive(expr):
                found = collect(expr, self._sum_of_leaf, self.addends(expr))
            else:
                found = wrapped(self._sum_of_leaf(expr), expr.dtype)
            self._sums[id(expr)] = found
        return found

    def _sum_of_leaf(self, expr: Expr) -> Sum:
        if isinstance(expr, IntImm):
            return number(expr.value)
        if not isinstance(expr, Mul):
            return self.atom(expr)
        factors: list[int] = []
        stack: list[Expr] = [expr]
        while stack:
            part = stack.pop()
            if isinstance(part, Mul):
                stack += [part.b, part.a]
                continue
            factors.append(self.serial(part))
            if len(factors) > _MAX_FACTORS:
                return self.atom(expr)
        return Sum({tuple(sorted(factors)): 1})

    def build(self, total: Sum, dtype: DType) -> Expr:
        """Return the expression of `total`, in the order that the module docstring states."""
        key = (dtype, total.const, frozenset(total.terms.items()))
        found = self._built.get(key)
        if found is None:
            found = self._built[key] = self._build(wrapped(total, dtype), dtype)
        return found

    def _build(self, total: Sum, dtype: DType) -> Expr:
        items = sorted(
            total.terms.items(),
            key=lambda item: (sorted(map(self._atom_order, item[0])), item[0]),
        )
        first = next((item for item in items if item[1] > 0), None)
        if first is None:
            # Without a positive term the constant comes first: `4 - i`.
            result = self.constant(total.const, dtype)
            const = 0
        else:
            items.remove(first)
            monomial, k = first
            result = self._term(monomial, k, dtype)
            const = total.const
        for monomial, k in items:
            term = self._term(monomial, abs(k), dtype)
            result = self.make(Add if k > 0 else Sub, result, term)
        if const:
            offset = self.constant(abs(const), dtype)
            result = self.make(Add if const > 0 else Sub, result, offset)
        # If each term is a leaf times a constant, `sum_of` would read the same Sum: keep it.
        if first is None:
            return result
        for monomial in total.terms:
            if len(monomial) > 1 or type(self.expr(monomial[0])) in _ADDITIVE:
                return result
        terms = dict([first, *items])
        self._sums.setdefault(id(result), Sum(terms, total.const))
        return result

    def _atom_order(self, atom: int) -> tuple[Rank, int]:
        return self.span(self.expr(atom))[0], atom

    def _term(self, monomial: Monomial, k: int, dtype: DType) -> Expr:
        atoms = sorted(monomial, key=self._atom_order)
        result = self.expr(atoms[0])
        for atom in atoms[1:]:
            result = self.make(Mul, result, self.expr(atom))
        if k == 1:
            return result
        return self.make(Mul, result, self.constant(k, dtype))
