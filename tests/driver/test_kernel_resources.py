"""Advice on slow kernels names a loop to unroll, or the largest local buffer."""

import pytest

from refcomp.driver.kernel_resources import (
    SlowKernelWarning,
    fewer_elements_advice,
    unrolling_advice,
    warn_of_slow_kernel,
)
from refcomp.ir.parser import parse_func

_INDEXED = """
func f(A: i8[9] out) {
  alloc L: i8[4] local { alloc M: i32[9] local {
    for i in range(4) { L@[0] = 1i8 }
    for j in range(4) { let k: i64 = j + 1 { M@[k] = 1i32 } }
    A@[0] = L@[0]
  } }
}
"""


def test_a_loop_whose_variable_chooses_among_local_elements_should_be_unrolled():
    advice = unrolling_advice(parse_func(_INDEXED))
    assert advice == "unroll the loop j, whose variable chooses among local elements"
    assert unrolling_advice(parse_func("func f(A: i8[9] out) { A@[0] = 1i8 }")) == ""


def test_the_largest_local_buffer_should_have_fewer_elements():
    advice = fewer_elements_advice(parse_func(_INDEXED))
    assert "let a thread keep fewer elements of M, which has 36 bytes" in advice
    plain = fewer_elements_advice(parse_func("func f(A: i8[9] out) { A@[0] = 1i8 }"))
    assert plain == "unroll less, or use narrower vectors"


def test_a_warning_stands_at_the_users_line():
    with pytest.warns(SlowKernelWarning) as caught:
        warn_of_slow_kernel("k", ["spills 1 byte", "waits"], "rest")
    assert caught[0].filename == __file__
    assert str(caught[0].message) == "the kernel k spills 1 byte and waits\n  what to do: rest"
