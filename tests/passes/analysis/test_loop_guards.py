import pytest

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_expr
from refcomp.ir.rewrite import with_fields
from refcomp.passes.analysis.loop_guards import conjuncts, guards_of
from refcomp.passes.analysis.scope_facts import facts_of


def _guards(body, extent="n"):
    text = f"func f(A: i64[n] out, B: i64[m]) {{ for i in range({extent}) {{ {body} }} }}"
    func = parse_func(text)
    return [_text(guard) for guard in guards_of(func.body, facts_of(func))]


def _text(guard):
    low, high = (
        "" if end is None else print_expr(end) for end in (guard.range.low, guard.range.high)
    )
    exactly = "exactly " if guard.range.is_exact else ""
    place = ", inside" if guard.is_inside_loop else ""
    return f"{print_expr(guard.condition)}: {exactly}[{low}, {high}){place}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (i < m) { A[i] = 0 }", ["i < m: exactly [, m)"]),
        (
            "if (i < m and i >= 2) { A[i] = 0 }",
            ["i < m: exactly [, m)", "i >= 2: exactly [2, )"],
        ),
        (
            "for j in range(8) { if (i * 8 + j < m) { A[i] = j } }",
            ["i * 8 + j < m: [, m // 8), inside"],
        ),
        (
            "for j in range(8) { A[i] = if_then_else(i + j >= 7, 0, 1) }",
            ["i + j >= 7: [7, ), inside"],
        ),
        ("let t: i64 = i * 2 { if (t < m) { A[i] = t } }", ["t < m: [, (m + 1) // 2)"]),
        ("A[i] = (let t: i64 = i * 2 in if_then_else(t < 4, t, 0))", ["t < 4: [, 2)"]),
        # The second is known to be decided by the first wherever it is evaluated.
        ("if (i < m) { if (i < m) { A[i] = 0 } }", ["i < m: exactly [, m)"]),
        ("if (i < m) { A[i] = 0 } else { if (i < m) { A[i] = 1 } }", ["i < m: exactly [, m)"]),
        ("if (m < 4) { A[i] = 0 }", []),
        ("if (A[i] < 4) { A[i] = 0 }", []),
        ("if (i < 4 or i > 9) { A[i] = 0 }", []),
    ],
)
def test_table(body, expected):
    assert _guards(body) == expected


def test_a_range_that_the_facts_around_exclude_is_no_guard():
    assert _guards("for j in range(8) { if (i * 8 + j < n) { A[i] = j } }", "n // 8") == []
    text = """
    func f(A: i64[n] out) {
      for i in range(n // 8, extent=1) { for j in range(8) { if (i * 8 + j < n) { A[i] = j } } }
    }
    """
    func = parse_func(text)
    assert guards_of(func.body, facts_of(func)) == []


def test_one_condition_at_two_places_counts_when_its_range_is_the_same():
    func = parse_func(
        "func f(A: i64[n] out) { for i in range(n) { A[i] = if_then_else(i < 4, 0, 1) } }"
    )
    loop = func.body
    choice = loop.body.value
    twice = with_fields(loop.body, value=choice + choice)
    (guard,) = guards_of(with_fields(loop, body=twice), facts_of(func))
    assert guard.condition is choice.condition


def test_a_loop_with_very_many_choices_has_no_guards():
    one = "if (i < m) { A[i] = A[i] + 1 }"
    assert len(_guards(one * 200)) == 200
    assert _guards(one * 300) == []


def test_conjuncts_come_in_order():
    func = parse_func("func f(A: i64[n] out) { if ((n < 1 and n < 2) and n < 3) { A[0] = 0 } }")
    assert [print_expr(part) for part in conjuncts(func.body.condition)] == [
        "n < 1",
        "n < 2",
        "n < 3",
    ]
