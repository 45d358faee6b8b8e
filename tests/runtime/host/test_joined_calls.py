"""Several calls as one call of C: results, failures, and calls that cannot be joined."""

from collections.abc import Callable

import numpy as np
import pytest

import refcomp as rc
from refcomp.compiler import build_lowered
from refcomp.foundation.registry import register_func, remove_global_func
from refcomp.foundation.target import as_target
from refcomp.ir.parser import parse_funcs
from refcomp.runtime.host.joined_calls import JoinedCalls, join_calls

_TEXT = """
func double(A: f32[n], B: f32[n] out) { for i in range(n) { B[i] = A[i] * 2.0f32 } }
func add(A: f32[n], B: f32[n], C: f32[n] out) {
  for i in range(n) parallel { C[i] = A[i] + B[i] }
}
func scale(A: f32[n] out, x: f32) { for i in range(n) { A[i] = A[i] * x } }
func note(A: f32[n] out) { packed tests.joined(n)  A[0] = 1.0f32 }
"""


Array = np.ndarray[tuple[int], np.dtype[np.float32]]
Numbers = tuple[Array, Array, Array]


def _build(text: str = _TEXT) -> rc.runtime.Module:
    funcs = parse_funcs(text)
    return build_lowered(funcs, as_target("llvm"), len(funcs))


@pytest.fixture
def numbers() -> Numbers:
    return np.arange(5, dtype="float32"), np.zeros(5, "float32"), np.zeros(5, "float32")


@pytest.mark.llvm
@pytest.mark.parametrize("threads", [1, 3])
def test_joined_calls_run_in_order(numbers: Numbers, threads: int) -> None:
    module = _build()
    a, b, c = numbers
    before = rc.runtime.thread_count()
    joined = join_calls([module["double"].bind(a, b), module["add"].bind(a, b, c)])
    assert isinstance(joined, JoinedCalls)
    try:
        rc.runtime.set_thread_count(threads)
        for factor in (1, 10):
            a[:] = factor * np.arange(5)
            joined()
            np.testing.assert_array_equal(c, 3 * a)
    finally:
        rc.runtime.set_thread_count(before)


@pytest.mark.llvm
def test_a_failing_call_ends_the_run(numbers: Numbers) -> None:
    a, b, c = numbers

    def fail(extent: int) -> None:
        raise ValueError(f"{extent} elements")

    register_func("tests.joined", fail)
    try:
        module = _build()
        note = module["note"].bind(c)
        joined = join_calls([module["double"].bind(a, b), note, module["double"].bind(b, c)])
        assert isinstance(joined, JoinedCalls)
        with pytest.raises(ValueError, match="5 elements"):
            joined()
    finally:
        remove_global_func("tests.joined")
    assert b.any()
    assert not c[1:].any()


@pytest.mark.llvm
def test_lack_of_memory_names_the_function(numbers: Numbers) -> None:
    body = "alloc T: f32[m * 1000000000000] { T[0] = B[0]  A[0] = T[0] }"
    text = f"func huge(A: f32[n] out, B: f32[m]) {{ {body} }}"
    module = _build(_TEXT + text)
    a, b, c = numbers
    double = module["double"].bind(a, b)
    joined = join_calls([double, module["huge"].bind(c, np.ones(9000000, "float32")), double])
    assert isinstance(joined, JoinedCalls)
    with pytest.raises(MemoryError, match="huge could not allocate"):
        joined()


@pytest.mark.llvm
def test_calls_with_scalars_are_made_one_by_one(numbers: Numbers) -> None:
    module = _build()
    a, b, _ = numbers
    joined = join_calls([module["double"].bind(a, b), module["scale"].bind(b, 5.0)])
    assert not isinstance(joined, JoinedCalls)
    joined()
    np.testing.assert_array_equal(b, 10 * a)


def test_other_callables_are_called_in_order() -> None:
    seen: list[int] = []
    calls: list[Callable[[], None]] = [lambda: seen.append(1), lambda: seen.append(2)]
    join_calls(calls)()
    join_calls([])()
    assert seen == [1, 2]
