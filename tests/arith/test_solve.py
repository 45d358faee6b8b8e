import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith import Facts, simplify
from refcomp.arith.solve import solve
from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.printer import print_expr
from tests.arith.evaluate_plain import evaluate
from tests.arith.facts_text import Scope
from tests.strategies.integer_facts import conditions, known_integers

# What is known, the condition, the hidden variables, and the range of i.
EXAMPLES = [
    ("n; i in n", "i < 4", "", "exactly [, 4)"),
    ("n; i in n", "i <= 4", "", "exactly [, 5)"),
    ("n; i in n", "3 < i", "", "exactly [4, )"),
    ("n; i in n", "i >= 4", "", "exactly [4, )"),
    ("n, m; i in n", "i < m", "", "exactly [, m)"),
    ("n; i in n", "i * 4 + 3 < 16", "", "exactly [, 4)"),
    ("n; i in n", "10 - i * 3 >= 0", "", "exactly [, 4)"),
    ("n; i in n", "i * 3 >= 10", "", "exactly [4, )"),
    ("n; i in (n + 31) // 32; j in 32", "i * 32 + j < n", "j", "[, n // 32)"),
    ("n; i in (n + 31) // 32; j in 32", "i * 32 + j < n", "", "exactly [, (n - j + 31) // 32)"),
    ("n; i in 4; j in 32", "n - i * 32 > j", "j", "[, n // 32)"),
    ("n; i in n; j in 4; k in 8", "i * 32 + j * 8 + k < n", "k j", "[, n // 32)"),
    ("n; i in n; j in i", "j < 4", "j", "[, 5)"),
    ("n; i in n; j in n", "i + j >= 1", "j", "[1, )"),
    ("n; i in n; j in n", "i + j < 9", "j", "[, 10 - n)"),
    ("n, m; i in n; j in m", "i * m + j < 100", "j", "[, 100 // m)"),
    ("n, m; i in n", "i * m < 100", "", None),  # m may be 0
    ("n; i in n; j in 64", "i * 8 + j // 8 < n", "j", "[, n // 8)"),
    ("n; i in n; j in 64", "i * 8 - j // 8 >= 0", "j", "[1, )"),
    ("n; i in n; x: i64", "i + x // 8 < n", "x", None),
    ("n; i in n; x: i64", "i + x < 9", "", None),  # may wrap
    ("n; i in n", "i * i < 9", "", None),
    ("n; i in n", "i // 2 < 9", "", "exactly [, 18)"),
    ("n; i in n", "i % 2 < n - 4", "", None),
    ("n; i in n", "i == 4", "", None),
    ("n; i in n", "i < 4 or i < n - 4", "", None),
    ("n; i in n; k in n", "k < 4", "", None),
    ("i: i32 in 8i32", "i < 4i32", "", None),
    ("i in 4", "i < 8", "", None),  # holds everywhere: there is nothing to solve
]


@pytest.mark.parametrize(("known", "condition", "hidden", "expected"), EXAMPLES)
def test_table(known, condition, hidden, expected):
    scope = Scope(known)
    inner = [scope.vars[name] for name in hidden.split()]
    found = solve(scope.expr(condition), scope.vars["i"], inner, scope.facts)
    outside = Scope(known).facts
    assert (None if found is None else _text(found, outside)) == expected


def _text(found, facts):
    low, high = (
        "" if end is None else print_expr(simplify(end, facts)) for end in (found.low, found.high)
    )
    return f"{'exactly ' if found.is_exact else ''}[{low}, {high})"


def test_memory_is_not_spoken_of():
    i, A = Var("i", I64), Buffer("A", I64, (IntImm(8, I64),))
    facts = Facts().bind(i, IntImm(0, I64), IntImm(8, I64))
    assert solve(i < BufferLoad(A, (i,)), i, (), facts) is None
    assert solve(Var("x", F32) < 1.0, i, (), facts) is None


@pytest.mark.search
@given(st.data(), known_integers())
def test_the_condition_holds_inside_and_where_exact_nowhere_else(data, known):
    x, y, z = known.variables
    var, hidden = data.draw(st.sampled_from([(x, (y,)), (x, ()), (y, (x,)), (y, ()), (z, (y, x))]))
    condition = data.draw(conditions(known.variables, 1))
    found = solve(condition, var, hidden, known.facts)
    if found is None:
        return
    assert known.dtype == I64
    for point in known.points:
        low, high = (
            end if end is None else evaluate(end, point) for end in (found.low, found.high)
        )
        inside = (low is None or point[var] >= low) and (high is None or point[var] < high)
        if inside:
            assert evaluate(condition, point)
        elif found.is_exact:
            assert not evaluate(condition, point)
