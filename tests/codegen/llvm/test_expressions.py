"""Every node on every dtype and number of lanes, compiled and run, against the interpreter."""

from pathlib import Path

import numpy as np
import pytest

from refcomp.codegen.llvm.module import print_llvm
from refcomp.ir.parser import parse_func
from tests.codegen.host_kernels import GENERIC, Kernels, same_bits
from tests.codegen.one_operation import (
    Case,
    binary_cases,
    cast_cases,
    choice_cases,
    constant_cases,
    let_cases,
)


def assert_all_agree(cases: list[Case], folder: Path) -> None:
    kernels = Kernels([k for case in cases for k in case.kernels.values()], folder, passes="sroa")
    wrong = []
    for case in cases:
        for lanes, kernel in case.kernels.items():
            result = case.empty_result()
            assert kernels.call(kernel, [*case.operands, result]) == 0
            bad = np.flatnonzero(~same_bits(result, case.expected))
            if bad.size:
                k = bad[0]
                inputs = [operand[k] for operand in case.operands]
                wrong.append(
                    f"{case.name} x{lanes}: {inputs} gives {result[k]}, not {case.expected[k]}"
                )
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.llvm
@pytest.mark.parametrize(
    "cases", [binary_cases, constant_cases, cast_cases, choice_cases, let_cases]
)
def test_nodes_agree_with_the_interpreter(cases, tmp_path: Path) -> None:
    assert_all_agree(list(cases()), tmp_path)


_HALVES = """
func halves(A: f16[8], B: f16[8], C: f16[8] out) {
  C@[ramp(0, 1, 8)] = max(A@[ramp(0, 1, 8)], B@[ramp(0, 1, 8)])
}"""


def test_vectors_of_f16_are_compared_as_integers_on_x86() -> None:
    func = parse_func(_HALVES)
    text = print_llvm([func], **GENERIC).text
    assert "icmp sgt <8 x i16>" in text
    assert "fcmp" not in text
    changed = GENERIC | {"triple": "aarch64-linux-gnu", "layout": "e"}
    other = print_llvm([func], **changed).text
    assert "fcmp ogt <8 x half>" in other
