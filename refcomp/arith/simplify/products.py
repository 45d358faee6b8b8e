"""Products and quotients inside of sums: what is multiplied out, and what is put together again.

`x // m * m + x % m` becomes `x`, and `x - x // m * m` becomes `x % m`; see RECOMBINATION.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from refcomp.arith.intern import LOOP_RANK
from refcomp.arith.linear import Monomial, Sum, number
from refcomp.arith.simplify.matching import Rewriter, split_by_product
from refcomp.arith.simplify.pattern import Op, parse
from refcomp.arith.simplify.rules import RECOMBINATION
from refcomp.foundation.dtype import DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Div, Expr, FloorDiv

_MOST_TERMS = (
    64  # longer sums are left alone, so that work stays linear in their length
)


def _roots(text: str, other: str) -> tuple[type[Expr], type[Expr]]:
    quotient = parse(text)
    remainder = parse(other)
    assert isinstance(quotient, Op) and isinstance(remainder, Op)
    return quotient.cls, remainder.cls


_REMAINDERS = dict(_roots(*pair) for pair in RECOMBINATION)


def factors_of(
    engine: Rewriter, a: tuple[Expr, Sum], b: tuple[Expr, Sum]
) -> tuple[Sum, Sum]:
    """The two factors of a product, each multiplied out later, or kept whole as an atom.

    Index arithmetic is multiplied out, so that terms can cancel; an extent such as `n + 1` stays
    whole beside a loop variable, so that `(i * (n + 1) + j) // (n + 1)` sees its divisor. Other
    sums stay whole, as multiplying out would compute more.
    """
    keeps_a = _stays_whole(engine, a, b)
    keeps_b = _stays_whole(engine, b, a)
    x = _whole(engine, *a) if keeps_a else a[1]
    return x, _whole(engine, *b) if keeps_b else b[1]


def _whole(engine: Rewriter, expr: Expr, total: Sum) -> Sum:
    """A sum as an atom, times what all of its coefficients share."""
    shared = gcd(total.divisor, total.const)
    if shared <= 1:
        return engine.table.atom(expr)
    terms = {monomial: k // shared for monomial, k in total.terms.items()}
    primitive = engine.table.build(Sum(terms, total.const // shared), expr.dtype)
    return engine.table.atom(primitive).scale(shared)


def _stays_whole(
    engine: Rewriter, own: tuple[Expr, Sum], other: tuple[Expr, Sum]
) -> bool:
    if other[1].is_const or not _is_long(own[1]):
        return False
    if _divides_by(engine, other[1], own[0]):
        return True
    if not (engine.bounds.is_index(own[0]) and engine.bounds.is_index(other[0])):
        return True
    if not _has_loop(engine, own[0]) and _has_loop(engine, other[0]):
        return True
    is_beside_extent = _has_loop(engine, own[0]) and not _has_loop(engine, other[0])
    return _is_long(other[1]) and not is_beside_extent


def _divides_by(engine: Rewriter, total: Sum, divisor: Expr) -> bool:
    atoms = (engine.table.expr(atom) for monomial in total.terms for atom in monomial)
    return any(isinstance(atom, FloorDiv | Div) and atom.b is divisor for atom in atoms)


def _is_long(total: Sum) -> bool:
    return len(total.terms) + bool(total.const) > 1


def _has_loop(engine: Rewriter, expr: Expr) -> bool:
    return engine.table.span(expr)[1][0] == LOOP_RANK


def without_nested_sums(engine: Rewriter, product: Sum) -> Sum:
    """`product` with a sum that was kept whole, but is left without a factor, multiplied out."""
    for monomial, k in product.terms.items():
        if len(monomial) == 1:
            inner = engine.table.sum_of(engine.table.expr(monomial[0]))
            if inner.sole_atom() is None:
                rest = product.plus(Sum({monomial: k}), -1)
                return without_nested_sums(engine, rest.plus(inner, k))
    return product


def recombined(engine: Rewriter, total: Sum, dtype: DType) -> Sum:
    """`total` with quotients and remainders of one division put together."""
    if len(total.terms) > _MOST_TERMS:
        return total
    for monomial, k in total.terms.items():
        for atom in monomial:
            if type(engine.table.expr(atom)) in _REMAINDERS:
                simpler = _put_together(engine, total, monomial, k, atom)
                if simpler is not None:
                    return recombined(engine, simpler, dtype)
    return total


def _put_together(
    engine: Rewriter, total: Sum, monomial: Monomial, k: int, atom: int
) -> Sum | None:
    """`total` with k * (x // m) * m * z as k * z * (x - x % m); None where that is no simpler."""
    quotient: Any = engine.table.expr(atom)
    place = monomial.index(atom)
    scale = _multiple_of_divisor(
        engine, monomial[:place] + monomial[place + 1 :], k, quotient.b
    )
    if scale is None:
        return None
    remainder = engine.make(_REMAINDERS[type(quotient)], quotient.a, quotient.b)
    difference = engine.table.sum_of(quotient.a).plus(
        engine.table.sum_of(remainder), -1
    )
    rest = total.plus(Sum({monomial: k}), -1)
    simpler = rest.plus(difference.times(scale))
    return simpler if _cost(engine, simpler) < _cost(engine, total) else None


def _multiple_of_divisor(
    engine: Rewriter, others: Monomial, k: int, divisor: Expr
) -> Sum | None:
    """z with k * others == divisor * z, where the divisor is not 0."""
    product = Sum({others: k}) if others else number(k)
    if (constant := as_int(divisor)) is not None:
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
    if rest.terms or rest.const or not engine.is_nonnegative(total.shift(-1)):
        return None
    return z


def _cost(engine: Rewriter, total: Sum) -> tuple[int, int]:
    """How many divisions a sum holds, then how many terms."""
    divisions = 0
    for monomial in total.terms:
        kinds = (type(engine.table.expr(atom)) for atom in monomial)
        divisions += sum(
            kind in _REMAINDERS or kind in _REMAINDERS.values() for kind in kinds
        )
    return divisions, len(total.terms)
