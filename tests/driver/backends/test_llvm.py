"""The host's back end: text, shared object, assembly."""

import numpy as np
import pytest

from refcomp.codegen.signature import signature_of
from refcomp.driver.backend import Loading
from refcomp.driver.backends import as_target
from refcomp.driver.backends.llvm import LLVM, compile_host, print_host
from refcomp.driver.compile import compile_functions
from refcomp.driver.pipeline import run_pipeline
from refcomp.ir.parser import parse_func

pytestmark = pytest.mark.llvm
FUNC = parse_func("func f(A: f32[n] out) { for i in range(n) { A[i] = 3.0f32 } }")


def test_functions_are_compiled_and_loaded():
    compiled = compile_functions([FUNC], "llvm")
    module = LLVM.load(compiled, Loading((signature_of(FUNC),), {"loop_ir": "its text"}, ()))
    found = np.zeros(5, np.float32)
    module(found)
    assert found.tolist() == [3.0] * 5
    assert module.get_source("loop_ir") == "its text"
    assert module.get_source("llvm").startswith("; func f") or "define" in module.get_source("llvm")


def test_the_text_is_what_is_compiled():
    made = [run_pipeline(FUNC, "llvm")]
    target = as_target("llvm")
    text = print_host(made, target).text
    assert compile_host(made, target, None).sources == {"llvm": text}
    shown = LLVM.texts(made, target)
    assert shown["llvm"]() == text and ".globl\tf" in shown["asm"]()
