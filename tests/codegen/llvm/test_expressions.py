"""Every node on every dtype and number of lanes, compiled and run, against the interpreter."""

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.host_kernels import Kernels, same_bits
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
