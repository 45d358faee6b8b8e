"""Who wrote an element, in order, and with which loops."""

import numpy as np

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


def test_every_write_is_told_with_its_variables():
    found = writes_to(FUNC, arrays(5, 7), "B", (1, 2))
    assert [write.value for write in found] == [0, 10, 24]
    assert [dict(write.values) for write in found] == [
        {"i": 1, "j": 2},
        {"k": 0, "j": 2},
        {"k": 1, "j": 2},
    ]
    assert str(found[1]) == "10 with k = 0, j = 2"


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
