"""Machine code that does what no caller sees is told."""

import numpy as np
import pytest

from refcomp import toolchain
from refcomp.driver.compile import compile_to_source
from refcomp.foundation.artifacts import Source
from refcomp.ir.parser import parse_func
from refcomp.mutate.child import run_in_child
from refcomp.mutate.host_runs import run_on_host

pytestmark = pytest.mark.llvm
_COPY = """
func f(A: f32[4], B: f32[4] out) {
  for i in range(4) {
    B[i] = A[i]
  }
}
"""
_HEAP = """
func f(A: f32[4], B: f32[4] out) {
  alloc T: f32[40000] align 64 {
    for i in range(20000) {
      T[i] = A[i // 5000]
    }
    for i in range(4) {
      B[i] = T[i * 5000]
    }
  }
}
"""


def _ran(text, *changes):
    source = compile_to_source([parse_func(text)], "llvm")
    printed = source.text
    for old, new in changes:
        assert old in printed, printed
        printed = printed.replace(old, new)
    wrong = Source(printed, "llvm", source.line_map, source.requires)

    def work(send):
        arrays = [np.arange(4, dtype=np.float32), np.zeros(4, np.float32)]
        ran = run_on_host(toolchain.compile_source(wrong, {}, "so"), "f", arrays)
        send([ran.arrays[1].tolist(), ran.fault, ran.failed])

    outcome = run_in_child(work, 60)
    return outcome.failure or outcome.messages[0]


_VALUES = [0.0, 1.0, 2.0, 3.0]


def test_right_code():
    assert _ran(_COPY) == [_VALUES, "", False]
    assert _ran(_HEAP) == [_VALUES, "", False]


def test_a_write_beyond_an_array():
    assert _ran(_COPY, ("slt i64 %i, 4", "slt i64 %i, 5"))[1] == "it writes beyond an array"


def test_a_read_beyond_an_array_and_of_what_was_never_written():
    told = "the results depend on memory that is not the program's"
    assert _ran(_COPY, ("ptr %A, i64 %i", "ptr %A, i64 4"))[1] == told
    assert _ran(_HEAP.replace("i * 5000", "i * 10000"))[1] == told


def test_memory_that_is_kept():
    assert _ran(_HEAP, ("  call void @free(ptr %T)\n", ""))[1] == "it keeps memory"


def test_what_it_returns():
    assert _ran(_COPY, ("ret i32 0", "ret i32 1")) == [_VALUES, "", True]
    assert _ran(_COPY, ("ret i32 0", "ret i32 7"))[1] == "it returns 7"


def test_a_crash():
    assert _ran(_COPY, ("ptr %A, i64 %i", "ptr null, i64 %i")) == "crashed by SIGSEGV"
