"""Callers: which functions get one, and when."""

import re

import pytest

from refcomp.codegen.llvm.module import HostPrinter
from refcomp.foundation.artifacts import CALL_ALL
from refcomp.ir.parser import parse_funcs
from tests.codegen.host_kernels import GENERIC, print_generic

_ADD = "func NAME(A: f32[n], B: f32[n] out) { B@[0] = A@[0] + 1.0f32 }"
_FILL = "func fill(A: f32[n, m] out) { A@[0] = 1.0f32 }"
_SCALE = "func scale(A: f32[4] out, x: f32) { A@[0] = x }"


def _defined(text: str) -> list[str]:
    return re.findall(r"^define weak_odr i32 @([\w.]+)\(", text, re.MULTILINE)


def test_functions_of_one_type_share_a_caller() -> None:
    funcs = parse_funcs(_ADD.replace("NAME", "f") + _ADD.replace("NAME", "g") + _FILL + _SCALE)
    text = print_generic(funcs).text
    assert _defined(text) == [CALL_ALL, "refcomp.call.2.1", "refcomp.call.1.2"]
    assert "call i32 %function(ptr %argument0, ptr %argument1, i64 %argument2, i32 %num" in text


def test_a_function_alone_has_no_caller() -> None:
    assert _defined(print_generic(parse_funcs(_FILL)).text) == []


@pytest.mark.parametrize("has_others", [False, True])
def test_a_part_of_a_module_has_callers(has_others: bool) -> None:
    printer = HostPrinter(**GENERIC)
    part = printer.print_part(parse_funcs(_FILL), has_others=has_others)
    assert _defined(part.text) == ([CALL_ALL, "refcomp.call.1.2"] if has_others else [])
