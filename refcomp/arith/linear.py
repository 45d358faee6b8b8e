"""Sums of products: the canonical form of integer expressions.

    Sum = const + coefficient * atom * ... * atom + ...

An atom is a representative (see `intern`) that is no sum itself: a variable, a division, a load.
`Sum` arithmetic is that of the integers; a Sum stands for its expression modulo 2^bits, and for
the exact integer only where `bounds.is_exact` says so. `collect` reads a Sum off an expression in
time linear in its size, however deep or shared it is, and `build` writes one in a stable order:
`i * 64 + j + n - 1`, loop variables first in order of their binding, negative terms subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import gcd
from typing import Any, TypeGuard

from refcomp.arith.intern import ExprTable, Rank
from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Add, Expr, IntImm, Mul, Sub

# Serial numbers of atoms, ascending; a square repeats its atom.
Monomial = tuple[int, ...]
Terms = dict[Monomial, int]
Key = tuple[tuple[Monomial, int], ...]
Parts = tuple[list[Add | Sub | Mul], list[Expr]]
_ADDITIVE = (Add, Sub, Mul)
_MOST_FACTORS = (
    8  # longer products are atoms, so that a chain of n factors stays linear in n
)


@dataclass(frozen=True, slots=True)
class Sum:
    """const + sum of coefficient * product; no coefficient is 0. Treat `terms` as frozen."""

    terms: Terms = field(default_factory=dict)
    const: int = 0

    @property
    def is_const(self) -> bool:
        """Whether it is a number."""
        return not self.terms

    @property
    def divisor(self) -> int:
        """The greatest common divisor of the coefficients; 0 for a number."""
        return gcd(*self.terms.values())

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """self + factor * other."""
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            _accumulate(terms, monomial, coefficient * factor)
        return Sum(terms, self.const + other.const * factor)

    def shift(self, offset: int) -> Sum:
        """self + offset."""
        return Sum(self.terms, self.const + offset) if offset else self

    def scale(self, factor: int) -> Sum:
        """self * factor."""
        if factor in (0, 1):
            return self if factor else Sum()
        terms = {monomial: k * factor for monomial, k in self.terms.items()}
        return Sum(terms, self.const * factor)

    def times(self, other: Sum) -> Sum:
        """The product, multiplied out."""
        result = Sum()
        for monomial, k in [*self.terms.items(), ((), self.const)]:
            result = result.plus(other.times_monomial(monomial), k) if k else result
        return result

    def times_monomial(self, monomial: Monomial) -> Sum:
        """self * monomial."""
        if not monomial:
            return self
        terms = {tuple(sorted(own + monomial)): k for own, k in self.terms.items()}
        if self.const:
            _accumulate(terms, monomial, self.const)
        return Sum(terms)

    def split(self, divisor: int) -> tuple[Sum, Sum]:
        """(x, y) with self == divisor * x + y; y holds the terms that are no multiples of the
        divisor, and a constant in [0, |divisor|)."""
        quotient: Terms = {}
        rest: Terms = {}
        for monomial, k in self.terms.items():
            if k % divisor:
                rest[monomial] = k
            else:
                quotient[monomial] = k // divisor
        const = self.const % abs(divisor)
        return Sum(quotient, (self.const - const) // divisor), Sum(rest, const)

    def split_factor(self, atom: int) -> tuple[Sum, Sum]:
        """(x, y) with self == atom * x + y, where y holds the products without the atom."""
        quotient = Sum()
        rest = Sum({}, self.const)
        for monomial, k in self.terms.items():
            if atom in monomial:
                place = monomial.index(atom)
                others = monomial[:place] + monomial[place + 1 :]
                quotient = quotient.plus(Sum({others: k}) if others else Sum({}, k))
            else:
                rest.terms[monomial] = k
        return quotient, rest

    def sole_atom(self) -> int | None:
        """The serial of the atom that this sum is, None when it is anything else."""
        if self.const or len(self.terms) != 1:
            return None
        ((monomial, k),) = self.terms.items()
        return monomial[0] if k == 1 and len(monomial) == 1 else None

    def equals(self, other: Sum) -> bool:
        """Whether both are the same sum."""
        return self.const == other.const and self.terms == other.terms


def _accumulate(terms: Terms, monomial: Monomial, coefficient: int) -> None:
    total = terms.get(monomial, 0) + coefficient
    if total:
        terms[monomial] = total
    else:
        terms.pop(monomial, None)


def number(value: int) -> Sum:
    """The Sum of a number alone."""
    return Sum({}, value)


def direction(total: Sum) -> tuple[Key, int]:
    """(key, k) such that the terms of `total` are k * key, the same key for all multiples."""
    items = sorted(total.terms.items())
    factor = total.divisor if items[0][1] > 0 else -total.divisor
    return tuple((monomial, k // factor) for monomial, k in items), factor


def is_summable(dtype: DType) -> bool:
    """Whether values of `dtype` have Sums: scalar integers."""
    return dtype.lanes == 1 and dtype.is_int


def is_additive(expr: Expr) -> TypeGuard[Add | Sub | Mul]:
    """Whether `expr` is an inner node of a sum: + or -, or * by a constant."""
    if not isinstance(expr, _ADDITIVE) or not is_summable(expr.dtype):
        return False
    return (
        not isinstance(expr, Mul)
        or isinstance(expr.a, IntImm)
        or isinstance(expr.b, IntImm)
    )


def addends(root: Expr) -> Parts:
    """The inner nodes of the sum `root`, each above its operands, and its leaves in order of
    appearance; each once, however often it is used."""
    inner: list[Add | Sub | Mul] = []
    leaves: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        expr, is_finished = stack.pop()
        if is_finished:
            inner.append(expr)
        elif id(expr) not in seen:
            seen.add(id(expr))
            if is_additive(expr):
                stack += ((expr, True), (expr.b, False), (expr.a, False))
            else:
                leaves.append(expr)
    inner.reverse()
    return inner, leaves


def collect(root: Expr, leaf: Callable[[Expr], Sum], parts: Parts | None = None) -> Sum:
    """The Sum of `root`; `leaf` gives that of each leaf, and `parts` are its `addends`."""
    inner, leaves = addends(root) if parts is None else parts
    factors = {id(root): 1}
    limit = 1 << root.dtype.bits
    for expr in inner:
        k = factors.pop(id(expr))
        for operand, factor in _weighted(expr):
            total = factors.get(id(operand), 0) + k * factor
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


def _weighted(expr: Add | Sub | Mul) -> tuple[tuple[Expr, int], ...]:
    if isinstance(expr, Add):
        return (expr.a, 1), (expr.b, 1)
    if isinstance(expr, Sub):
        return (expr.a, 1), (expr.b, -1)
    if isinstance(expr.b, IntImm):
        return ((expr.a, expr.b.value),)
    assert isinstance(expr.a, IntImm)
    return ((expr.b, expr.a.value),)


def wrapped(total: Sum, dtype: DType) -> Sum:
    """`total` with numbers beyond the reach of `dtype` reduced modulo 2^bits.

    Small negative numbers stay so in unsigned types, as `x - 1` is exact more often than
    `x + 255`.
    """
    reach = dtype.max_value
    if -reach <= total.const <= reach and all(
        -reach <= k <= reach for k in total.terms.values()
    ):
        return total
    terms = {monomial: _reduced(k, dtype) for monomial, k in total.terms.items()}
    return Sum({m: k for m, k in terms.items() if k}, _reduced(total.const, dtype))


def _reduced(value: int, dtype: DType) -> int:
    if -dtype.max_value <= value <= dtype.max_value:
        return value
    value %= 1 << dtype.bits
    return value - (1 << dtype.bits) if value > dtype.max_value else value


def multiply(a: Sum, b: Sum) -> Sum | None:
    """The product of two sums of which one has at most one term; None when it is too long."""
    if len(a.terms) + bool(a.const) > 1:
        a, b = b, a
    product = b.scale(a.const) if a.is_const else a.times(b)
    longest = max(map(len, product.terms), default=0)
    return None if longest > _MOST_FACTORS else product


class SumTable(ExprTable):
    """Representatives, and the Sums of those that are simplified."""

    def __init__(self) -> None:
        super().__init__()
        self._sums: dict[int, Sum] = {}

    def atom(self, expr: Expr) -> Sum:
        """The Sum that is one times a representative."""
        return Sum({(self.serial(expr),): 1})

    def sum_of(self, expr: Expr) -> Sum:
        """The Sum of a simplified integer representative, as `build` has written it."""
        found = self._sums.get(id(expr))
        if found is None:
            found = self._sums[id(expr)] = collect(expr, self._leaf)
        return found

    def _leaf(self, expr: Expr) -> Sum:
        if isinstance(expr, IntImm):
            return number(expr.value)
        if not isinstance(expr, Mul):
            return self.atom(expr)
        factors: list[int] = []
        stack: list[Expr] = [expr]
        while stack and len(factors) <= _MOST_FACTORS:
            part = stack.pop()
            if isinstance(part, Mul):
                stack += [part.b, part.a]
            else:
                factors.append(self.serial(part))
        return (
            self.atom(expr)
            if stack or len(factors) > _MOST_FACTORS
            else _product(factors)
        )

    def build(self, total: Sum, dtype: DType) -> Expr:
        """The expression of `total`, in the order that the module docstring gives."""
        total = wrapped(total, dtype)
        items = sorted(total.terms.items(), key=lambda item: self._place(item[0]))
        first = next((i for i, (_, k) in enumerate(items) if k > 0), None)
        if first is None:
            result = self.constant(total.const, dtype)
            const = 0
        else:
            items.insert(0, items.pop(first))
            result = self._term(*items[0], dtype)
            const = total.const
        for monomial, k in items if first is None else items[1:]:
            term = self._term(monomial, abs(k), dtype)
            result = self.make(Add if k > 0 else Sub, result, term)
        if const:
            offset = self.constant(abs(const), dtype)
            result = self.make(Add if const > 0 else Sub, result, offset)
        if first is not None and all(self._is_leaf(monomial) for monomial, _ in items):
            # As it would be read.
            self._sums.setdefault(id(result), Sum(dict(items), total.const))
        return result

    def _is_leaf(self, monomial: Monomial) -> bool:
        return len(monomial) == 1 and not isinstance(self.expr(monomial[0]), _ADDITIVE)

    def _place(self, monomial: Monomial) -> tuple[list[tuple[Rank, int]], Monomial]:
        return sorted(self._atom_place(atom) for atom in monomial), monomial

    def _atom_place(self, atom: int) -> tuple[Rank, int]:
        return self.span(self.expr(atom))[0], atom

    def _term(self, monomial: Monomial, k: int, dtype: DType) -> Expr:
        atoms = sorted(monomial, key=self._atom_place)
        result = self.expr(atoms[0])
        for atom in atoms[1:]:
            result = self.make(Mul, result, self.expr(atom))
        return result if k == 1 else self.make(Mul, result, self.constant(k, dtype))


def _product(factors: list[int]) -> Sum:
    return Sum({tuple(sorted(factors)): 1})
