"""Vectorized loops are split where all quotients of their variable have a common step."""

import pytest
from hypothesis import given

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.passes import split_vector_loops as module
from refcomp.passes.split_vector_loops import split_vector_loops
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, split_vector_loops)


def _func(index, lanes=16, kind="vectorized", minimum=0):
    """Return a loop over `lanes` elements that reads at `index`."""
    return parse_func(f"""
        func f(A: f32[64], B: f32[64] out, n: i64) {{
          for o in range(2) {{
            for i in range({minimum}, extent={lanes}) {kind} {{
              B@[i] = A@[{index}]
            }}
          }}
        }}
    """)


@pytest.mark.parametrize(
    ("index", "read"),
    [
        ("i % 4 * 2 + i // 4", "i.outer + i.inner * 2"),
        # The steps of both are multiples of 4, as are the first elements.
        ("(o * 16 + i) // 12", "(o * 4 + i.outer) // 3"),
        ("i // 8 + i % 4", "i.outer // 2 + i.inner"),
    ],
)
def test_vectors_do_not_cross_a_step(index, read):
    lines = [line.strip() for line in print_func(split_vector_loops(_func(index))).splitlines()]
    assert lines[2:5] == [
        "for i.outer in range(4) unrolled {",
        "for i.inner in range(4) vectorized {",
        f"B@[i.outer * 4 + i.inner] = A@[{read}]",
    ]


def test_loop_that_does_not_begin_at_0():
    lines = print_func(split_vector_loops(_func("i // 8", lanes=16, minimum=8))).splitlines()
    assert lines[4].strip() == "B@[i.outer * 8 + i.inner + 8] = A@[i.outer + 1]"


@pytest.mark.parametrize(
    ("index", "lanes"),
    [
        ("i * 3", 16),  # no quotient
        ("o // 4 + i", 16),  # of another variable
        ("i // 2", 16),  # short steps
        ("i // 16", 16),  # no step within the loop
        ("i // 6", 16),  # the greatest common step is 2
        ("i // n", 16),  # a step that is not known
        ("(i + 3) // 4", 16),  # steps that are not those of the vectors
        ("i // 4", 6),  # does not divide the loop
    ],
)
def test_loop_stays(index, lanes):
    func = _func(index, lanes)
    assert split_vector_loops(func) is func


def test_other_kinds_of_loops_stay():
    func = _func("i % 4", kind="unrolled")
    assert split_vector_loops(func) is func


@pytest.mark.search
@given(runnable_funcs("flat"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(split_vector_loops, *drawn, "flat")
