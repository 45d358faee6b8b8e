"""The interpreter as a back end: nothing is compiled, and rules of the loop IR are watched."""

import numpy as np
import pytest

import refcomp
from refcomp.driver.compile import compile_functions
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.failure import InterpretError


def test_functions_run_as_they_are():
    func = parse_func("func f(A: f32[n] out) { for i in range(n) { A[i] = 3.0f32 } }")
    assert compile_functions([func], "interp").code is None
    found = np.zeros(3, np.float32)
    refcomp.build(func, target="interp")(found)
    assert found.tolist() == [3.0] * 3


def test_broken_rules_are_told():
    func = parse_func(
        "func f(A: i32[n] out, B: i32[n]) { for i in range(n) { A[i] = B[i64(B[i])] } }"
    )
    with pytest.raises(InterpretError, match="index 7 in dimension 0 of B is out of range"):
        refcomp.build(func, target="interp")(np.zeros(2, np.int32), np.full(2, 7, np.int32))
