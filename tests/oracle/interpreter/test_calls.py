"""Calls of registered and of C functions, as the interpreter makes them."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.foundation.registry import register_func, remove_global_func
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter import interpret as definition
from refcomp.oracle.interpreter.interpret import InterpretError, interpret
from refcomp.oracle.lockstep import interpret as lockstep

HEAD = "func f(A: f32[3], B: f32[3] out, k: i32) "


@pytest.fixture
def called():
    calls = []
    register_func("tests.f", lambda *args: calls.append(args))
    yield calls
    remove_global_func("tests.f")


def run(text, k=0):
    a, b = np.arange(3, dtype=np.float32), np.full(3, 7, np.float32)
    interpret(parse_func(HEAD + "{" + text + "}"), [a, b, k])
    return a, b


def test_numbers_are_pythons_own(called):
    run("packed tests.f(k * 2i32, f64(k) / 2.0f64, 1.5f16, k == 3i32, 200u8)", 3)
    assert called == [(6, 1.5, 1.5, True, 200)]
    assert list(map(type, called[0])) == [int, float, float, bool, int]


def test_arrays_are_copies_of_the_memory(called):
    a, b = run("packed tests.f(read(A), write(B))")
    seen = called[0]
    assert all(type(x) is refcomp.NDArray for x in seen)
    assert seen[0].asnumpy().tolist() == a.tolist() and seen[1].asnumpy().tolist() == b.tolist()
    assert not seen[0].numpy().flags.writeable and seen[1].numpy().flags.writeable


def test_what_is_read_must_have_been_written(called):
    with pytest.raises(InterpretError, match="element 1 of T is read, never written") as caught:
        run("alloc T: f32[2] { T[0] = 1.0f32 packed tests.f(read(T)) }")
    assert "packed tests.f(read(T))" in str(caught.value)
    run("alloc T: f32[2] { packed tests.f(write(T)) packed tests.f(update(T)) B[0] = T[1] }")
    assert len(called) == 2


def test_a_missing_function_is_told():
    with pytest.raises(UserError, match="no function 'tests.nowhere' is registered"):
        run("packed tests.nowhere()")


def test_what_a_function_raises_comes_out():
    error = KeyError("mine")

    def fail():
        raise error

    register_func("tests.fail", fail)
    with pytest.raises(KeyError) as caught:
        run("packed tests.fail()")
    assert caught.value is error
    remove_global_func("tests.fail")


def test_c_functions_get_addresses():
    _, b = run("extern i32 memcpy(write(B[1]), read(A[2]), 4)")
    assert b.tolist() == [7, 2, 7]


def test_of_a_part_the_first_element_must_be_written():
    """How far the callee reads is not known: other parts may be written later."""
    _, b = run("alloc T: f32[3] { T[1] = 5.0f32 extern i32 memcpy(write(B), read(T[1]), 4) }")
    assert b[0] == 5
    for part in ("T[2]", "T"):
        with pytest.raises(InterpretError, match=r"element \d of T is read, never written"):
            run(f"alloc T: f32[3] {{ T[1] = 5.0f32 extern i32 memcpy(write(B), read({part}), 4) }}")


def test_c_functions_give_values():
    _, b = run("B[0] = extern f32 hypotf(3.0f32, f32(extern i32 abs(k)))", -4)
    assert b[0] == 5


def test_a_region_finds_c_functions():
    run("region r () task t of u { extern i32 abs(k) }".replace("()", "(k)"))


@pytest.mark.parametrize("interpret", [definition.interpret, lockstep.interpret])
def test_threads_of_a_kernel_find_c_functions_of_the_user(interpret):
    kernel = "for t in range(4) threadIdx.x { A[t] = extern i32 __popcountdi2(t) }"
    func = parse_func(f"func f(A: i32[4] out) {{ {kernel} }}")
    found = np.zeros(4, np.int32)
    interpret(func, [found], libraries=["libgcc_s.so.1"])
    assert found.tolist() == [0, 1, 1, 2]


def test_a_region_in_a_kernel_has_as_many_tasks_as_any_other():
    region = "region r (A) task u of n { A[u] = i32(n) }"
    func = parse_func(f"func f(A: i32[4] out) {{ for t in range(1) threadIdx.x {{ {region} }} }}")
    found = np.zeros(4, np.int32)
    definition.interpret(func, [found], num_tasks=4)
    assert found.tolist() == [4, 4, 4, 4]


def test_warnings_of_numpy_are_as_ever():
    register_func("tests.warn", lambda: np.float32(1) / np.float32(0))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        run("packed tests.warn()")
    remove_global_func("tests.warn")
