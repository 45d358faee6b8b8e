"""Every node on every dtype and number of lanes, run on PoCL, against the interpreter."""

import numpy as np
import pytest

from refcomp.codegen.opencl.module import print_opencl
from refcomp.foundation.dtype import I64
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.stmt import Store
from tests.codegen.host_kernels import same_bits
from tests.codegen.one_operation import (
    Case,
    binary_cases,
    cast_cases,
    choice_cases,
    constant_cases,
    let_cases,
)
from tests.codegen.opencl.kernels import OpenCLKernels, print_body, together

LANES = (1, 4)  # other vectors differ in their names only
AT_ONCE = 40  # operations in one kernel: PoCL passes 1024 bytes of arguments


def assert_all_agree(cases: list[Case]) -> None:
    groups = [cases[k : k + AT_ONCE] for k in range(0, len(cases), AT_ONCE)]
    parts = [
        (group, together([case.kernels[lanes] for case in group], f"part{number}_x{lanes}"))
        for lanes in LANES
        for number, group in enumerate(groups)
    ]
    kernels = OpenCLKernels([kernel for _, kernel in parts])
    wrong = []
    for group, kernel in parts:
        results = [case.empty_result() for case in group]
        args = [(*case.operands, result) for case, result in zip(group, results, strict=True)]
        kernels.call(kernel, [arg for several in args for arg in several])
        for case, result in zip(group, results, strict=True):
            for k in np.flatnonzero(~same_bits(result, case.expected))[:1]:
                inputs = [operand[k] for operand in case.operands]
                told = f"{inputs} gives {result[k]}, not {case.expected[k]}"
                wrong.append(f"{case.name} in {kernel.name}: {told}")
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.pocl
@pytest.mark.parametrize(
    "cases", [binary_cases, constant_cases, cast_cases, choice_cases, let_cases]
)
def test_nodes_agree_with_the_interpreter(cases) -> None:
    assert_all_agree(list(cases()))


def _value(text: str, params: str = "i: i64, j: i64, s: i8, x: f32, p: bool") -> str:
    printed = print_body(f"R@[0] = {text}", f"R: i64[8] out, {params}")
    return next(line for line in printed.splitlines() if "R[" in line).strip()


def test_sums_and_products_wrap_in_the_unsigned_type():
    assert _value("i * 3 + j - 1") == "R[0l] = (long)(i * 3ul + j - 1ul);"
    assert _value("(i + j) * (i - j)") == "R[0l] = (long)(((ulong)i + j) * ((ulong)i - j));"
    assert _value("i64(s * s)") == "R[0l] = (long)(char)((uint)s * s);"
    assert _value("i * -2") == "R[0l] = (long)((ulong)i * -2l);"


def test_parentheses_stand_where_they_are_needed_or_spare_a_look_at_the_table():
    assert _value("i - (j - 1)") == "R[0l] = (long)(i - (j - 1ul));"
    assert _value("i >> 1 & j") == "R[0l] = (i >> 1l) & j;"
    assert _value("select(p and i < j or i == 0, i, j)") == (
        "R[0l] = (p && i < j) || i == 0l ? i : j;"
    )
    assert _value("truncdiv(i, 3) * 3") == "R[0l] = (long)(i / 3l * 3ul);"


def test_divisions_that_cannot_fail_are_operators():
    assert _value("truncdiv(i, 3)") == "R[0l] = i / 3l;"
    assert _value("i // 8 + i % 8") == "R[0l] = (long)((ulong)(i >> 3l) + (i & 7l));"
    assert "floordiv_i64(i, 3l)" in _value("i // 3")
    assert "div_i64(i, j)" in _value("truncdiv(i, j)")


def test_what_is_nested_deeply_gets_names():
    var, out = Var("i", I64), Buffer("R", I64, (IntImm(1, I64),))
    value: ir.Expr = var
    for _ in range(300):
        value = ir.Sub(IntImm(1, I64), value)
    func = PrimFunc("f", (out, var), Store(out, IntImm(0, I64), value), ("R",))
    text = print_opencl([func], extensions=()).text
    assert max(line.count("(") for line in text.splitlines()) < 60
    assert text.count("const ulong t") == 7


def test_a_branch_that_needs_names_is_a_statement():
    plain = print_body("R@[0] = if_then_else(i < 3, R@[i], 7)", "R: i64[8] out, i: i64")
    assert "R[0l] = i < 3l ? R[i] : 7l;" in plain and "if (" not in plain
    lets = print_body(
        "R@[0] = if_then_else(i < 3, (let q: i64 = R@[i] in q * q), 7)", "R: i64[8] out, i: i64"
    )
    assert "  if (i < 3l) {\n    const long q = R[i];\n" in lets
    assert "  R[0l] = t;" in lets
