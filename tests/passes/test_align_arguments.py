"""Which arguments must begin at multiples of more than their elements."""

import pytest
from hypothesis import given, settings

from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from refcomp.passes import align_arguments as module
from refcomp.passes.align_arguments import align_arguments
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def _alignment(index: str, dtype: str = "f32", lanes: int = 4) -> int:
    text = f"""
    func f(A: {dtype}[4096], B: {dtype}[4096] out, k: i64) {{
      for t in range(8) threadIdx.x {{
        let j: i64 = t * 8 {{
          alloc T: {dtype}[{lanes}] local {{ T@[ramp(0, 1, {lanes})] = A@[{index}] }}
        }}
      }}
    }}"""
    func = parse_func(text)
    verify(func, "device")
    return align_arguments(func).params[0].alignment


def test_docstring() -> None:
    assert_docstring_holds(module, align_arguments)


@pytest.mark.parametrize(
    ("index", "dtype", "lanes", "expected"),
    [
        ("ramp(j, 1, 4)", "f32", 4, 16),
        ("ramp(j + 2, 1, 4)", "f32", 4, 8),
        ("ramp(j + 1, 1, 4)", "f32", 4, 0),
        ("ramp(j + k, 1, 4)", "f32", 4, 0),
        ("ramp(j, 1, 2)", "f32", 2, 8),
        ("ramp(j, 1, 8)", "f32", 8, 16),  # two accesses
        ("ramp(j, 1, 8)", "f16", 8, 16),
        ("ramp(j, 1, 4)", "i8", 4, 4),
        ("ramp(j, 1, 2)", "f64", 2, 16),
        ("ramp(j, 1, 8)", "bool", 8, 8),
        ("ramp(j, 2, 4)", "f32", 4, 0),  # not side by side
        ("ramp(j, 1, 4) if broadcast(k < 3, 4)", "f32", 4, 0),  # lane by lane
    ],
)
def test_alignment_of_an_access(index: str, dtype: str, lanes: int, expected: int) -> None:
    assert _alignment(index, dtype, lanes) == expected


def test_scalars_need_no_alignment() -> None:
    func = parse_func("func f(A: f32[64], B: f32[64] out) { B@[0] = A@[4] }")
    assert align_arguments(func) is func


def test_a_declared_alignment_is_kept() -> None:
    func = parse_func("func f(A: f32[64] align 64, B: f32[64] out) { B@[0] = A@[4] }")
    assert align_arguments(func) is func


@given(runnable_funcs("host"))
@settings(max_examples=20, deadline=None)
def test_meaning_is_kept(program: tuple) -> None:
    assert_meaning_is_kept(align_arguments, *program, "host")
