import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import For, IfThenElse, Origin
from refcomp.ir.verify import verify
from refcomp.passes import hoist_conditions as module
from refcomp.passes.hoist_conditions import hoist_conditions
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, hoist_conditions)


def _hoisted(body):
    func = hoist_conditions(parse_func(f"func f(A: i64[n] out, s: i64) {{ {body} }}"))
    verify(func, "nested")
    return " ".join(line.strip() for line in print_func(func).splitlines()[1:-1])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "for i in range(4) { for j in range(4) { if (s < 2) { A[j] = i } } }",
            "if (s < 2) { for i in range(4) { for j in range(4) { A[j] = i } } }",
        ),
        (
            "for i in range(4) { for j in range(4) { if (i < s and j < s) { A[j] = i } } }",
            "for i in range(4) { if (i < s) { for j in range(4) { if (j < s) { A[j] = i } } } }",
        ),
        (
            "for j in range(4) vectorized { if (s < 2 and n < 3) { A[j] = 0 } }",
            "if (s < 2 and n < 3) { for j in range(4) vectorized { A[j] = 0 } }",
        ),
        (
            "for j in range(n) parallel { if (s < 2) { A[j] = 0 } else { A[j] = j } }",
            "if (s < 2) { for j in range(n) parallel { A[j] = 0 } } "
            "else { for j in range(n) parallel { A[j] = j } }",
        ),
    ],
)
def test_table(body, expected):
    assert _hoisted(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(4) { if (i < s) { A[i] = 0 } }",
        "for i in range(4) { if (A[0] < 3) { A[i] = 7 } }",  # the loop writes what it reads
        "for i in range(4) { if (i < s and n < 3) { A[i] = 0 } else { A[i] = 1 } }",
        "for i in range(4) { if (s < 2) { A[i] = 0 } A[i] = 1 }",
        "for b in range(4) blockIdx.x { if (s < 2) { A[b] = 0 } }",
        "for i in range(4) { if (s < 2) { for b in range(4) blockIdx.x { A[b] = i } } }",
    ],
)
def test_left_alone(body):
    func = parse_func(f"func f(A: i64[n] out, s: i64) {{ {body} }}")
    assert hoist_conditions(func) is func


def test_each_loop_has_a_variable_of_its_own_and_origins_are_kept():
    func = parse_func(
        "func f(A: i64[n] out) { for i in range(4) { if (n < 2) { A[0] = i } else { A[1] = i } } }"
    )
    outer, inner = Origin("A", "i"), Origin("A")
    branch = with_fields(func.body.body, origin=inner)
    func = func.with_body(with_fields(func.body, body=branch, origin=outer))
    after = hoist_conditions(func)
    loops = [node for node in walk(after.body) if isinstance(node, For)]
    assert len({id(loop.var) for loop in loops}) == 2
    assert [loop.origin for loop in loops] == [outer, outer]
    assert isinstance(after.body, IfThenElse)
    assert after.body.origin is inner


@pytest.mark.search
@given(runnable_funcs("nested"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(hoist_conditions, *drawn, "nested")


_PARTS = ("n < 3", "m < n", "i < m", "j <= i", "n + m < 9", "j + 1 < n", "i + j < 4")


@pytest.mark.search
@given(
    st.lists(st.sampled_from(_PARTS), min_size=1, max_size=3),
    st.lists(st.sampled_from(_PARTS[:3]), max_size=2),
    st.booleans(),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_branches_of_all_kinds(inner, outer, has_else, n, m):
    text = "H[0] = H[0] * 3 + i * 2 + j"
    other = " else { H[0] = H[0] * 5 + j }" if has_else else ""
    text = f"for j in range(m) {{ if ({' and '.join(inner)}) {{ {text} }}{other} }}"
    if outer:
        text = f"if ({' and '.join(outer)}) {{ {text} }}"
    text = f"for i in range(n) {{ {text} }}"
    func = parse_func(f"func f(H: i64[1] out, N: i64[n], M: i64[m]) {{ {text} }}")
    symbols = dict(zip(func.symbols, (n, m), strict=True))
    assert_meaning_is_kept(hoist_conditions, func, symbols, "nested")
