"""Products of pairs are one instruction on x86, if a vector of the processor holds them."""

import re

import numpy as np
import pytest

from refcomp.codegen.llvm.module import print_llvm
from refcomp.ir.parser import parse_func
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.toolchain import compile_source, host_facts, host_triple_and_layout
from tests.codegen.host_kernels import GENERIC, Kernels

_TEXT = """
func pairs_{lanes}(A: i32[{n}], B: i32[{n}], C: i32[{n}] out) {{
  let x: {dtype} = A@[{index}] {{
    let y: {dtype} = B@[{index}] {{
      C@[{index}] = (x << {half} >> {half}) * (y << {half} >> {half})
        + (x >> {half}) * (y >> {half})
    }}
  }}
}}"""


def _func(lanes: int):
    index = f"ramp(0, 1, {lanes})" if lanes > 1 else "0"
    half = f"broadcast(16i32, {lanes})" if lanes > 1 else "16i32"
    dtype = f"i32x{lanes}" if lanes > 1 else "i32"
    return parse_func(_TEXT.format(n=lanes, lanes=lanes, index=index, half=half, dtype=dtype))


def _called(lanes: int, **options) -> list[str]:
    text = print_llvm([_func(lanes)], **(GENERIC | {"word_bits": 512} | options)).text
    return re.findall(r"call .* @(llvm\.x86[\w.]+)", text)


@pytest.mark.parametrize(
    ("lanes", "function"),
    [
        (4, "llvm.x86.sse2.pmadd.wd"),
        (8, "llvm.x86.avx2.pmadd.wd"),
        (16, "llvm.x86.avx512.pmaddw.d.512"),
    ],
)
def test_each_width_has_its_instruction(lanes, function) -> None:
    assert _called(lanes) == [function]
    assert _called(lanes, word_bits=32 * lanes) == [function]


def test_long_vectors_are_multiplied_in_halves() -> None:
    assert _called(32) == ["llvm.x86.avx512.pmaddw.d.512"] * 2
    assert _called(16, word_bits=256) == ["llvm.x86.avx2.pmadd.wd"] * 2
    assert _called(16, word_bits=128) == ["llvm.x86.sse2.pmadd.wd"] * 4
    assert _called(24, word_bits=512) == _called(12, word_bits=256) == []


def test_what_has_no_instruction_stays_arithmetic() -> None:
    assert _called(1) == _called(6) == _called(4, word_bits=64) == []
    assert _called(4, triple="aarch64-linux-gnu", layout="e") == []
    assert _called(4, word_bits=0) == []


def _printed(mcpu: str, lanes=(4, 8, 16)):
    facts = host_facts(mcpu)
    return print_llvm(
        [_func(number) for number in lanes],
        triple=facts.triple,
        layout=facts.layout,
        vector_bits=facts.vector_bits,
        word_bits=facts.word_bits,
    )


@pytest.mark.llvm
def test_results_are_those_of_the_arithmetic(tmp_path) -> None:
    lengths = (1, 4, 6, 8, 16, 32)
    kernels = Kernels([], tmp_path, _printed("native", lengths))
    rng = np.random.default_rng(0)
    for lanes in lengths:
        for low, high in ((-(2**31), 2**31), (-4, 4)):
            a, b = rng.integers(low, high, (2, lanes)).astype(np.int32)
            a[0] = b[0] = -(2**31) + 2**15  # both halves are the least: the sum wraps
            expected, actual = np.zeros((2, lanes), np.int32)
            interpret(_func(lanes), [a, b, expected])
            assert kernels.call(_func(lanes), [a, b, actual]) == 0
            assert actual.tolist() == expected.tolist()


@pytest.mark.llvm
@pytest.mark.parametrize("mcpu", ["sandybridge", "knl", "skx"])
def test_a_processor_without_the_wide_instruction_has_code(mcpu) -> None:
    """Sandy Bridge has 256 bits for floats alone, Knights Landing 512 for i32 alone."""
    if not host_triple_and_layout()[0].startswith("x86_64"):
        pytest.skip("processors of x86")
    assert compile_source(_printed(mcpu), {"mcpu": mcpu}, "so").data
