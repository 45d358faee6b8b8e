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


_RAMPS = """
func ramps(n: i8, C: i8[4, 4] out) {
  C@[ramp(0, 1, 4)] = ramp(n, 1i8, 4)
  C@[ramp(4, 1, 4)] = ramp(n + 8i8, 1i8, 4)
  C@[ramp(8, 1, 4)] = ramp(n + 100i8, -50i8, 4)
  C@[ramp(12, 1, 4)] = ramp(n + 120i8, 10i8, 4)
}"""


@pytest.mark.llvm
def test_ramps_that_differ_by_constants_share_a_splat(tmp_path: Path) -> None:
    """The last one does not: its elements are no constants of the dtype."""
    func = parse_func(_RAMPS)
    text = print_llvm([func], **GENERIC).text
    assert text.count("shufflevector") == 4 and text.count("add i8") == 1
    assert "<i8 8, i8 9, i8 10, i8 11>" in text and "<i8 100, i8 50, i8 0, i8 -50>" in text
    kernels = Kernels([func], tmp_path)
    for n in (-128, -1, 0, 127):
        found = np.zeros((4, 4), np.int8)
        assert kernels.call(func, [n, found]) == 0
        bases = np.array([[0], [8], [100], [120]]) + n
        expected = bases + np.array([[1], [1], [-50], [10]]) * np.arange(4)
        np.testing.assert_array_equal(found, expected.astype(np.int8))
