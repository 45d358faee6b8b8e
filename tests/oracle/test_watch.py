"""Who wrote an element, in order, and with which loops."""

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from refcomp.oracle.watch import writes_to

FUNC = parse_func("""
func f(A: i64[2], B: i64[2, 3] out) {
  for i in range(2) { for j in range(3) { B[i, j] = 0 } }
  for k in range(2) { for j in range(3) { B[1, j] = B[1, j] + A[k] * j } }
}
""")


def arrays(*values: int) -> list[np.ndarray]:
    return [np.array(values, np.int64), np.zeros((2, 3), np.int64)]


@pytest.mark.parametrize("in_step", [None, 1])
def test_every_write_is_told_with_its_variables(in_step):
    found = writes_to(FUNC, arrays(5, 7), "B", (1, 2), in_step)
    assert [write.value for write in found] == [0, 10, 24]
    assert [dict(write.values) for write in found] == [
        {"i": 1, "j": 2},
        {"k": 0, "j": 2},
        {"k": 1, "j": 2},
    ]
    assert str(found[1]) == "10 with k = 0, j = 2"
    assert found[1].where == "B[1, j] = B[1, j] + A[k] * j with k = 0, j = 2"


def test_an_element_that_nothing_writes():
    func = parse_func("func f(A: i64[2], B: i64[2, 3] out) { B[0, 0] = A[1] }")
    assert writes_to(func, arrays(5, 7), "B", (1, 2)) == []
    assert str(writes_to(func, arrays(5, 7), "B", (0, 0))[0]) == "7"


def test_updates_count_and_writes_before_a_broken_rule_are_told():
    func = parse_func(
        "func f(A: i64[2], B: i64[2, 3] out) { for t in range(2) threadIdx.x {"
        " atomic add B[0, 0] with A[t] } B[0, 0] = A[9] }"
    )
    found = writes_to(func, arrays(5, 7), "B", (0, 0))
    assert [write.value for write in found][-1] == 12
    assert len(found) == 2


KERNEL = """
func f(A: i64[2], B: i64[2, 3] out) {
  for t in range(3) threadIdx.x {
    FIRST
    barrier
    if (t == 1) { B[1, 2] = B[1, 2] * 10 + t }
  }
}
"""


@pytest.mark.parametrize("in_step", [None, 1])
@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("B[0, t] = t", ["31 with t = 1"]),
        ("if (t == 2) { B[1, 2] = A[t - 1] }", ["7 with t = 2", "71 with t = 1"]),
        # The threads' order, which shows in what is told, is the plain interpreter's.
        (
            "atomic add B[1, 2] with t + 1",
            ["2 with t = 1", "3 with t = 0", "6 with t = 2", "61 with t = 1"],
        ),
        ("B[0, t] = A[t]", []),  # out of range
    ],
)
def test_writes_of_threads(first, told, in_step):
    func, given = parse_func(KERNEL.replace("FIRST", first)), arrays(5, 7)
    given[1][1, 2] = 3 if "= t" in first and "==" not in first else 0
    assert [str(write) for write in writes_to(func, given, "B", (1, 2), in_step)] == told
