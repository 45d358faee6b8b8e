"""Rewrite rules, as data: `before` becomes `after` if the side condition `where` holds.

A name stands for an expression, and the same name for the same expression. Names that begin with
`c` stand for integer constants only. `lanes` is a number of vector lanes. `//` and `%` are FloorDiv
and FloorMod, which are 0 by zero.

In INTEGER patterns `x * m + y` matches a sum in every way in which it has that form. The multiplier
`m` is bound already or a constant, and `y` gets the terms that are not multiples of it. In side
conditions constants are computed with, and everything else is proved. Tests prove each rule in its
theory.
"""

from __future__ import annotations

from typing import Literal

from refcomp.foundation.records import record

# The values for which a rule holds.
Theory = Literal["integer", "wrapping", "logic", "order", "float", "vector"]
# The unbounded integers. Such a rule is applied to an integer type only if every operand of a
# division, comparison, min or max, before and after, is exact (see facts.py).
INTEGER: Theory = "integer"
WRAPPING: Theory = "wrapping"  # every integer type, modulo 2^bits
# Bools, and values of any type that are chosen, not computed with.
LOGIC: Theory = "logic"
ORDER: Theory = "order"  # integers of any type that are only compared
FLOAT: Theory = "float"  # every float type, with infinities, NaN and both zeros
VECTOR: Theory = "vector"  # lanes of integers, modulo 2^bits


@record
class Rule:
    """A rewrite of `before` to `after`. The three texts are Python expressions."""

    before: str
    after: str
    where: str  # condition; empty: always
    theory: Theory

    def __str__(self) -> str:
        condition = f" where {self.where}" if self.where else ""
        return f"{self.theory}: {self.before} -> {self.after}{condition}"


def _rules(theory: Theory, *texts: tuple[str, ...]) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for before, after, *where in texts:
        condition = where[0] if where else ""
        rules.append(Rule(before, after, condition, theory))
    return tuple(rules)


DIVISION = (
    *_rules(
        WRAPPING,
        ("x // 1", "x"),
        ("x // 0", "0"),
        ("0 // x", "0"),
        ("x % 1", "0"),
        ("x % 0", "0"),
        ("0 % x", "0"),
        ("truncdiv(x, 1)", "x"),
        ("truncdiv(x, 0)", "0"),
        ("truncmod(x, 1)", "0"),
        ("truncmod(x, 0)", "0"),
        ("(x * c + y) % c", "y % c", "0 < c and c & (c - 1) == 0"),
    ),
    *_rules(
        INTEGER,
        ("x // m", "0", "0 <= x and x < m"),
        ("x // m", "-1", "0 - m <= x and x < 0"),
        ("(x * m + y) // m", "x + y // m", "m != 0"),
        ("x // c", "(0 - x) // (0 - c)", "c < 0"),
        (
            "(x * c1 + y) // c2",
            "x // (c2 // c1)",
            "1 < c1 and c1 < c2 and c2 % c1 == 0 and 0 <= y and y < c1",
        ),
        ("(x // m1) // m2", "x // (m1 * m2)", "0 < m1 and 0 < m2"),
        ("(x // c1 + c3) // c2", "(x + c3 * c1) // (c1 * c2)", "0 < c1 and 0 < c2"),
        ("x % m", "x", "0 <= x and x < m"),
        ("x % m", "x + m", "0 - m <= x and x < 0"),
        ("(x * m + y) % m", "y % m"),
        ("(x % m * c + y) % m", "(x * c + y) % m"),
        ("(x % (z * m)) % m", "x % m", "z * m != 0"),
        (
            "(x % c1 * c3 + y) % c2",
            "(x * c3 + y) % c2",
            "c2 != 0 and c1 != 0 and c1 * c3 % c2 == 0",
        ),
        (
            "(x * c1 + y) % c2",
            "(x % (c2 // c1)) * c1 + y",
            "1 < c1 and c1 < c2 and c2 % c1 == 0 and 0 <= y and y < c1",
        ),
        ("(x // c1) % c2", "(x % (c1 * c2)) // c1", "0 < c1 and 0 < c2"),
        ("truncdiv(x, y)", "x // y", "0 <= x and 0 < y"),
        ("truncmod(x, y)", "x % y", "0 <= x and 0 < y"),
    ),
)

# Quotient and remainder in x // m * m + x % m == x, which holds modulo 2^bits if m is not 0.
# `products.recombined` searches sums for either part of the left side.
RECOMBINATION = (("x // m", "x % m"), ("truncdiv(x, m)", "truncmod(x, m)"))

EXTREMES = (
    *_rules(LOGIC, ("min(x, x)", "x"), ("max(x, x)", "x")),
    *_rules(
        ORDER,
        ("min(c, x)", "min(x, c)"),
        ("max(c, x)", "max(x, c)"),
        ("min(min(x, c1), c2)", "min(x, min(c1, c2))"),
        ("max(max(x, c1), c2)", "max(x, max(c1, c2))"),
        ("min(max(x, c1), c2)", "c2", "c2 <= c1"),
        ("max(min(x, c1), c2)", "c2", "c1 <= c2"),
        ("min(min(x, y), x)", "min(x, y)"),
        ("min(min(x, y), y)", "min(x, y)"),
        ("min(x, min(x, y))", "min(x, y)"),
        ("min(x, min(y, x))", "min(y, x)"),
        ("max(max(x, y), x)", "max(x, y)"),
        ("max(max(x, y), y)", "max(x, y)"),
        ("max(x, max(x, y))", "max(x, y)"),
        ("max(x, max(y, x))", "max(y, x)"),
        ("min(x, max(x, y))", "x"),
        ("min(x, max(y, x))", "x"),
        ("min(max(x, y), x)", "x"),
        ("min(max(y, x), x)", "x"),
        ("max(x, min(x, y))", "x"),
        ("max(x, min(y, x))", "x"),
        ("max(min(x, y), x)", "x"),
        ("max(min(y, x), x)", "x"),
    ),
)

# Applied to the difference of the two sides of a comparison, if both sides are exact.
SIGNS = _rules(
    INTEGER,
    ("x * c + y < 0", "x < 0", "1 < c and 0 <= y and y < c"),
    ("x * c == 0", "x == 0", "c != 0"),
)

COMPARISONS = (
    *_rules(
        ORDER,
        ("x < x", "False"),
        ("x <= x", "True"),
        ("x == x", "True"),
        ("x != x", "False"),
        ("min(x, y) <= x", "True"),
        ("min(x, y) <= y", "True"),
        ("x <= max(x, y)", "True"),
        ("y <= max(x, y)", "True"),
        ("x < min(x, y)", "False"),
        ("y < min(x, y)", "False"),
        ("max(x, y) < x", "False"),
        ("max(x, y) < y", "False"),
    ),
    *_rules(
        INTEGER,
        ("x // c1 < c2", "x < c2 * c1", "0 < c1"),
        ("c2 <= x // c1", "c2 * c1 <= x", "0 < c1"),
    ),
    *_rules(
        LOGIC,
        ("p == True", "p"),
        ("True == p", "p"),
        ("p == False", "not p"),
        ("False == p", "not p"),
        ("p != True", "not p"),
        ("True != p", "not p"),
        ("p != False", "p"),
        ("False != p", "p"),
    ),
)

CHOICES = _rules(
    LOGIC,
    ("p and True", "p"),
    ("True and p", "p"),
    ("p and False", "False"),
    ("False and p", "False"),
    ("p and p", "p"),
    ("p and not p", "False"),
    ("not p and p", "False"),
    ("p and (p and q)", "p and q"),
    ("p and (q and p)", "p and q"),
    ("(p and q) and p", "p and q"),
    ("(p and q) and q", "p and q"),
    ("p and (p or q)", "p"),
    ("p and (q or p)", "p"),
    ("p or False", "p"),
    ("False or p", "p"),
    ("p or True", "True"),
    ("True or p", "True"),
    ("p or p", "p"),
    ("p or not p", "True"),
    ("not p or p", "True"),
    ("p or (p or q)", "p or q"),
    ("p or (q or p)", "p or q"),
    ("(p or q) or p", "p or q"),
    ("(p or q) or q", "p or q"),
    ("p or (p and q)", "p"),
    ("p or (q and p)", "p"),
    ("not not p", "p"),
    ("not (x == y)", "x != y"),
    ("not (x != y)", "x == y"),
    ("select(True, x, y)", "x"),
    ("select(False, x, y)", "y"),
    ("select(p, x, x)", "x"),
    ("select(p, True, False)", "p"),
    ("select(p, False, True)", "not p"),
    ("select(not p, x, y)", "select(p, y, x)"),
    ("select(p, select(p, x, y), z)", "select(p, x, z)"),
    ("select(p, x, select(p, y, z))", "select(p, x, z)"),
    ("if_then_else(True, x, y)", "x"),
    ("if_then_else(False, x, y)", "y"),
    ("if_then_else(p, x, x)", "x"),
    ("if_then_else(p, True, False)", "p"),
    ("if_then_else(p, False, True)", "not p"),
    ("if_then_else(not p, x, y)", "if_then_else(p, y, x)"),
    ("if_then_else(p, if_then_else(p, x, y), z)", "if_then_else(p, x, z)"),
    ("if_then_else(p, x, if_then_else(p, y, z))", "if_then_else(p, x, z)"),
) + _rules(
    ORDER,
    ("not (x < y)", "y <= x"),
    ("not (x <= y)", "y < x"),
)

BITS = _rules(
    WRAPPING,
    ("c & x", "x & c"),
    ("c | x", "x | c"),
    ("c ^ x", "x ^ c"),
    ("x & 0", "0"),
    ("x & -1", "x"),
    ("x & x", "x"),
    ("x | 0", "x"),
    ("x | -1", "-1"),
    ("x | x", "x"),
    ("x ^ 0", "x"),
    ("x ^ x", "0"),
    ("x << 0", "x"),
    ("x >> 0", "x"),
    ("0 << x", "0"),
    ("0 >> x", "0"),
)

# x + 0.0 and 0.0 * x are missing: the first is not x for x = -0.0, the second is not 0.0 for NaN.
FLOATS = _rules(
    FLOAT,
    ("x * 1.0", "x"),
    ("1.0 * x", "x"),
    ("x / 1.0", "x"),
    ("x - 0.0", "x"),
    ("x + -0.0", "x"),
    ("-0.0 + x", "x"),
)

# Used for vectors only. For scalar integers, `Sum` implies these rules.
LANES = _rules(
    WRAPPING,
    ("x + 0", "x"),
    ("0 + x", "x"),
    ("x - 0", "x"),
    ("x - x", "0"),
    ("x * 1", "x"),
    ("1 * x", "x"),
    ("x * 0", "0"),
    ("0 * x", "0"),
)

VECTORS = _rules(
    VECTOR,
    ("ramp(x, 0, lanes)", "broadcast(x, lanes)"),
    ("ramp(x, y, lanes) + broadcast(z, lanes)", "ramp(x + z, y, lanes)"),
    ("broadcast(z, lanes) + ramp(x, y, lanes)", "ramp(x + z, y, lanes)"),
    ("ramp(x, y, lanes) - broadcast(z, lanes)", "ramp(x - z, y, lanes)"),
    ("broadcast(z, lanes) - ramp(x, y, lanes)", "ramp(z - x, 0 - y, lanes)"),
    ("ramp(x, y, lanes) + ramp(z, w, lanes)", "ramp(x + z, y + w, lanes)"),
    ("ramp(x, y, lanes) - ramp(z, w, lanes)", "ramp(x - z, y - w, lanes)"),
    ("ramp(x, y, lanes) * broadcast(z, lanes)", "ramp(x * z, y * z, lanes)"),
    ("broadcast(z, lanes) * ramp(x, y, lanes)", "ramp(x * z, y * z, lanes)"),
)

RULES = (*DIVISION, *EXTREMES, *COMPARISONS, *CHOICES, *BITS, *FLOATS, *LANES, *VECTORS)
