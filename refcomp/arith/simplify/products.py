"""Products and quotients inside of sums: what is multiplied out, and what is recombined.

`x // m * m + x % m` becomes `x`, and `x - x // m * m` becomes `x % m`; see RECOMBINATION.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from refcomp.arith.intern import LOOP_RANK
from refcomp.arith.linear import Monomial, Sum, scaled_monomial
from refcomp.arith.simplify.matching import Rewriter, split_by_product
from refcomp.arith.simplify.pattern import Op, parse
from refcomp.arith.simplify.rules import RECOMBINATION
from refcomp.foundation.dtype import DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import BinaryExpr, Div, Expr, FloorDiv

_MAX_TERMS = 64  # longer sums are left alone, so that time stays linear in their length


def _class_of(text: str) -> type[Expr]:
    pattern = parse(text)
    assert isinstance(pattern, Op)
    return pattern.cls


_REMAINDERS = {
    _class_of(quotient): _class_of(remainder) for quotient, remainder in RECOMBINATION
}
_DIVISIONS = {*_REMAINDERS, *_REMAINDERS.values()}


class Multiplicand(NamedTuple):
    """A factor of a product."""

    expr: Expr  # a representative
    total: Sum  # the Sum of `expr`


def factors_of(engine: Rewriter, a: Multiplicand, b: Multiplicand) -> tuple[Sum, Sum]:
    """Return the factors of a product as Sums to multiply: as they are, or as one atom each.

    Index arithmetic is multiplied out, so that terms can cancel. An extent such as `n + 1` stays
    whole beside a loop variable, so that `(i * (n + 1) + j) // (n + 1)` contains its divisor. Other
    sums stay whole, because multiplying them out would compute more.
    """
    x = _as_atom(engine, a) if _stays_whole(engine, a, b) else a.total
    y = _as_atom(engine, b) if _stays_whole(engine, b, a) else b.total
    return x, y


def _as_atom(engine: Rewriter, factor: Multiplicand) -> Sum:
    """Return a sum as an atom, times the common divisor of its coefficients."""
    expr, total = factor
    shared = gcd(total.divisor, total.const)
    if shared <= 1:
        return engine.table.atom(expr)
    terms = {monomial: k // shared for monomial, k in total.terms.items()}
    primitive = Sum(terms, total.const // shared)
    atom = engine.table.build(primitive, expr.dtype)
    return engine.table.atom(atom).scale(shared)


def _stays_whole(engine: Rewriter, own: Multiplicand, other: Multiplicand) -> bool:
    if other.total.is_const or own.total.length <= 1:
        return False
    # In x // d * d the divisor must stay, so that the quotient can be recombined.
    for monomial in other.total.terms:
        for atom in map(engine.table.expr, monomial):
            if isinstance(atom, FloorDiv | Div) and atom.b is own.expr:
                return True
    is_index = engine.bounds.is_index
    if not (is_index(own.expr) and is_index(other.expr)):
        return True
    own_has_loop = _has_loop(engine, own.expr)
    other_has_loop = _has_loop(engine, other.expr)
    if other_has_loop and not own_has_loop:
        return True
    is_beside_extent = own_has_loop and not other_has_loop
    return other.total.length > 1 and not is_beside_extent


def _has_loop(engine: Rewriter, expr: Expr) -> bool:
    return engine.table.span(expr)[1][0] == LOOP_RANK


def without_nested_sums(engine: Rewriter, product: Sum) -> Sum:
    """Return `product` with each atom that is a sum, and a term of its own, multiplied out.

    Such an atom was kept whole beside another factor, which has become a constant.
    """
    for monomial, k in product.terms.items():
        if len(monomial) == 1:
            inner = engine.table.sum_of(engine.table.expr(monomial[0]))
            if inner.sole_atom() is None:
                rest = product.plus(Sum({monomial: k}), -1)
                return without_nested_sums(engine, rest.plus(inner, k))
    return product


def recombined(engine: Rewriter, total: Sum, dtype: DType) -> Sum:
    """Return `total` with quotients and remainders of one division recombined."""
    if len(total.terms) > _MAX_TERMS:
        return total
    sum_of = engine.table.sum_of
    for monomial, k in total.terms.items():
        for atom in monomial:
            quotient = engine.table.expr(atom)
            if type(quotient) not in _REMAINDERS:
                continue
            assert isinstance(quotient, BinaryExpr)
            place = monomial.index(atom)
            others = monomial[:place] + monomial[place + 1 :]
            scale = _quotient(engine, others, k, quotient.b)
            if scale is None:
                continue
            # x // m * m is x - x % m.
            cls = _REMAINDERS[type(quotient)]
            remainder = engine.make(cls, quotient.a, quotient.b)
            rounded = sum_of(quotient.a).plus(sum_of(remainder), -1)
            rest = total.plus(Sum({monomial: k}), -1)
            simpler = rest.plus(rounded.times(scale))
            if _cost(engine, simpler) < _cost(engine, total):
                return recombined(engine, simpler, dtype)
    return total


def _quotient(
    engine: Rewriter, monomial: Monomial, k: int, divisor: Expr
) -> Sum | None:
    """Return z with k * monomial == divisor * z; None without such a z, or if divisor may be 0."""
    product = scaled_monomial(monomial, k)
    constant = as_int(divisor)
    if constant is not None:
        is_whole = constant != 0 and k % constant == 0
        return product.split(constant)[0] if is_whole else None
    total = engine.table.sum_of(divisor)
    if not engine.bounds.is_exact(total, divisor.dtype):
        return None
    if len(total.terms) == 1 and not total.const:
        ((factors, multiple),) = total.terms.items()
        z, rest = split_by_product(product, factors, multiple)
    else:
        z, rest = product.split_factor(engine.table.serial(divisor))
    if rest.length or not engine.is_nonnegative(total.shift(-1)):
        return None
    return z


def _cost(engine: Rewriter, total: Sum) -> tuple[int, int]:
    """Return the number of divisions in a sum, and the number of its terms."""
    divisions = 0
    for monomial in total.terms:
        for atom in monomial:
            divisions += type(engine.table.expr(atom)) in _DIVISIONS
    return divisions, len(total.terms)
