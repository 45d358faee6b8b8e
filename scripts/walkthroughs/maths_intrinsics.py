#!/usr/bin/env python3
"""Maths: functions by name, which every target computes with one error bound, and C's own.

Shows what each becomes in LLVM IR: an instruction, a call of libm, a call of its vector version, or
simpler arithmetic. Needs LLVM's tools. Exit code: 1 when a result is beyond its bound.
"""

import re
import sys

import numpy as np

import refcomp as rc
from refcomp.ir.intrinsics import INTRINSICS

SIZE = 64
EXACT = {"exp": np.exp, "tanh": np.tanh, "sqrt": np.sqrt, "log1p": np.log1p, "floor": np.floor}


def compiled(name: str, lanes: int) -> tuple[np.ndarray, str]:
    """Return the intrinsic of 0, 1/8, 2/8, ... in f32, and the calls in its LLVM IR."""
    a = rc.placeholder((SIZE,), name="A")
    b = rc.compute((SIZE,), lambda i: rc.call_pure_intrin("float32", name, a[i]), name="B")
    s = rc.create_schedule(b)
    if lanes > 1:
        s[b].vectorize(s[b].split(b.op.axis[0], factor=lanes)[1])
    module = rc.build(s, [a, b], name="kernel")
    result = np.zeros(SIZE, np.float32)
    module(np.arange(SIZE, dtype=np.float32) / 8, result)
    calls = re.findall(r"call [^@]*@([\w.]+)", module.get_source("llvm"))
    return result, ", ".join(dict.fromkeys(calls)) or "instructions alone"


def errors_in_ulp(result: np.ndarray, name: str) -> float:
    """Return the greatest distance from the exact value, in units in the last place of f32."""
    exact = EXACT[name](np.arange(SIZE) / 8)
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(result - exact) / unit))


def named_functions() -> bool:
    """Compare each function with its bound in `refcomp.ir.intrinsics`, in scalars and vectors."""
    right = True
    for name in EXACT:
        for lanes in (1, 8):
            result, calls = compiled(name, lanes)
            error, bound = errors_in_ulp(result, name), max(0.5, INTRINSICS[name].ulp)
            print(f"{name:6} {lanes} lanes: {error:.2f} of {bound} ulp, by {calls}")
            right &= error <= bound
    return right


def functions_of_c() -> bool:
    """Call a function that has no name in refcomp, of the C library or of a library of your own."""
    a = rc.placeholder((SIZE,), "float64", "A")
    b = rc.compute((SIZE,), lambda i: rc.call_pure_extern("float64", "erfc", a[i]), name="B")
    x, result = np.linspace(-2, 2, SIZE), np.zeros(SIZE)
    rc.build(rc.create_schedule(b), [a, b])(x, result)
    erf = rc.compute((SIZE,), lambda i: 1.0 - rc.erf(a[i]), name="E")
    other = np.zeros(SIZE)
    rc.build(rc.create_schedule(erf), [a, erf])(x, other)
    return bool(np.allclose(result, other, rtol=0, atol=1e-12))


if __name__ == "__main__":
    found = {"named_functions": named_functions(), "functions_of_c": functions_of_c()}
    print("right:", found)
    sys.exit(int(not all(found.values())))
