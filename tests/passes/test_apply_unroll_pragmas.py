"""Which loops pragmas make unrolled, and that no pragma is left."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.passes import apply_unroll_pragmas as module
from refcomp.passes.apply_unroll_pragmas import apply_unroll_pragmas
from tests.passes.docstring_examples import assert_docstring_holds

HEAD = "func f(A: f32[n], B: f32[n] out) "
NEST = "for i in range({i}) {{ for j in range({j}) {{ B@[i] = A@[j] B@[j] = A@[i] }} }}"


def applied(body: str) -> str:
    text = print_func(apply_unroll_pragmas(parse_func(HEAD + "{" + body + "}")))
    assert "pragma" not in text
    return text


def test_the_docstring_holds():
    assert_docstring_holds(module, apply_unroll_pragmas)


def test_nothing_changes_without_pragmas():
    func = parse_func(HEAD + "{" + NEST.format(i=2, j=2) + "}")
    assert apply_unroll_pragmas(func) is func


@pytest.mark.parametrize(
    ("most", "i", "j", "unrolled"),
    [
        (7, 2, 4, []),
        (8, 2, 4, ["j"]),
        (15, 2, 4, ["j"]),
        (16, 2, 4, ["j", "i"]),
        (16, "n", 4, ["j"]),
        (16, 2, "n", []),
        (16, 2, 0, []),
        (0, 1, 1, []),
    ],
)
def test_a_loop_is_unrolled_up_to_a_number_of_stores(most, i, j, unrolled):
    text = applied(f"pragma auto_unroll_max_step {most} {{ {NEST.format(i=i, j=j)} }}")
    assert [var for var in "ji" if f"for {var} in range({i if var == 'i' else j}) u" in text] == (
        unrolled
    )


def test_other_kinds_of_loops_are_not_unrolled():
    text = applied(
        "pragma auto_unroll_max_step 99 { for i in range(2) vectorized { B@[i] = 1f32 } }"
    )
    assert "range(2) vectorized" in text
    text = applied("pragma auto_unroll_max_step 99 { for i in range(2) parallel { B@[i] = 1f32 } }")
    assert "range(2) parallel" in text


def test_the_innermost_pragma_counts():
    text = applied(
        "pragma auto_unroll_max_step 99 { for i in range(2) { B@[i] = 1f32 }"
        " pragma auto_unroll_max_step 0 { for k in range(2) { B@[k] = 1f32 } } }"
    )
    assert "for i in range(2) unrolled" in text
    assert "for k in range(2) {" in text


def test_without_explicit_unrolling_loops_stay():
    text = applied("pragma unroll_explicit 0 { for i in range(4) unrolled { B@[i] = 1f32 } }")
    assert "for i in range(4) unrollable {" in text
    text = applied("pragma unroll_explicit 1 { for i in range(4) unrolled { B@[i] = 1f32 } }")
    assert "for i in range(4) unrolled {" in text


def test_loops_that_become_unrolled_stay_without_explicit_unrolling():
    text = applied(
        "pragma unroll_explicit 0 { pragma auto_unroll_max_step 8 { "
        "for i in range(4) { for j in range(2) { B@[i] = 1f32 } } } }"
    )
    assert "for i in range(4) unrollable" in text
    assert "for j in range(2) unrollable" in text


def test_pragmas_of_other_keys_go():
    assert "B@[0] = 1.0f32" in applied("pragma something n { B@[0] = 1f32 }")


@pytest.mark.parametrize("key", ["auto_unroll_max_step", "unroll_explicit"])
def test_a_value_that_is_no_constant_is_refused(key):
    with pytest.raises(
        UserError, match=f"pragma {key} has the value n, which is not a cons"
    ) as told:
        applied(f"pragma {key} n {{ B@[0] = 1f32 }}")
    assert key in told.value.remedy
