"""Double buffers: filled one iteration ahead, in turns."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.verify import find_fault
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes import inject_double_buffers as module
from refcomp.passes.inject_double_buffers import inject_double_buffers
from tests.passes.docstring_examples import assert_docstring_holds

HEAD = "func f(A: f32[n, 4], B: f32[n, 4] out) "
BODY = """
for k in range({range}) {{
  pragma double_buffer 1 {{
    alloc T: f32[4] {{
      for i in range(4) {{ T[i] = A[k, i] * 2f32 }}
      for j in range(4) {{ B[k, j] = T[3 - j] }}
    }}
  }}
}}
"""


def doubled(body: str) -> str:
    return print_func(inject_double_buffers(parse_func(HEAD + "{" + body + "}")))


@pytest.mark.search
def test_the_docstring_holds():
    assert_docstring_holds(module, inject_double_buffers)


def test_nothing_changes_without_the_pragma():
    func = parse_func(HEAD + "{ for i in range(n) { B[i, 0] = A[i, 0] } }")
    assert inject_double_buffers(func) is func


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("span", ["n", "1, extent=n - 1"])
def test_the_meaning_is_kept(rows, span):
    func = parse_func(HEAD + "{" + BODY.format(range=span) + "}")
    a = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    plain, ahead = np.zeros((2, rows, 4), np.float32)
    interpret(func, [a, plain])
    interpret(inject_double_buffers(func), [a, ahead])
    assert (plain == ahead).all()
    assert rows < 2 or plain.any()


def test_the_buffer_is_filled_ahead_and_once_before():
    text = doubled(BODY.format(range="n"))
    assert text.index("alloc T: f32[2, 4]") < text.index("if (0 < n)") < text.index("for k in")
    assert text.index("if (k + 1 < n)") < text.index("B[k, j] = T[k % 2, 3 - j]")
    assert "T[(k + 1) % 2, i_1] = A[k + 1, i_1]" in text.replace("i]", "i_1]").replace("i, ", "")


def test_two_buffers_of_one_loop_are_both_doubled():
    text = doubled(
        "for k in range(n) { pragma double_buffer 1 { alloc T: f32[1] {"
        " pragma double_buffer 1 { alloc U: f32[1] {"
        " T[0] = A[k, 0] U[0] = A[k, 1] B[k, 0] = T[0] * U[0] } } } } }"
    )
    assert "alloc T: f32[2, 1]" in text
    assert "alloc U: f32[2, 1]" in text
    assert "B[k, 0] = T[k % 2, 0] * U[k % 2, 0]" in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "pragma double_buffer 1 { alloc T: f32[1] { T[0] = A[0, 0] } }",
            "not allocated in a serial loop",
        ),
        (
            "for k in range(n) { pragma double_buffer 1 { alloc T: f32[1] {"
            " B[k, 0] = T[0] T[0] = A[k, 0] } } }",
            "it is read before it is filled",
        ),
        (
            "for k in range(n) { alloc U: f32[1] { pragma double_buffer 1 { alloc T: f32[1] {"
            " U[0] = A[k, 0] T[0] = U[0] B[k, 0] = T[0] } } } }",
            "filled from U, which the same iteration computes",
        ),
        (
            "for k in range(n) { pragma double_buffer 1 { alloc T: f32[1] { B[k, 0] = 1f32 } } }",
            "nothing fills it there",
        ),
        (
            "for k in range(n) { alloc U: f32[1] { pragma double_buffer 1 { alloc T: f32[1] {"
            " for i in range(1) { U[i] = A[k, i] T[i] = A[k, i] } B[k, 0] = T[0] + U[0] } } } }",
            "one statement fills T and U",
        ),
    ],
)
def test_what_cannot_be_filled_ahead_is_refused(body, why):
    with pytest.raises(UserError, match="T cannot be double-buffered") as caught:
        doubled(body)
    assert why in caught.value.why
    assert caught.value.remedy


def test_a_prefetch_follows_its_buffer():
    body = BODY.format(range="n").replace("B[k, j] = ", "prefetch T[j] B[k, j] = ")
    func = inject_double_buffers(parse_func(HEAD + "{" + body + "}"))
    assert find_fault(func, "nested") is None
    assert "prefetch T[k % 2, j]" in print_func(func)
