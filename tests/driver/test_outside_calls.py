"""Calls that leave the loop IR: found or refused before a tool runs."""

from dataclasses import replace

import pytest

from refcomp.driver.backends import as_target
from refcomp.driver.outside_calls import checked_calls
from refcomp.foundation.errors import UserError
from refcomp.foundation.machine import machine
from refcomp.ir.parser import parse_func


def _calling(call):
    return parse_func(f"func f(A: f32[4] out) {{ for i in range(4) {{ A[i] = {call} }} }}")


@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_functions_of_the_host_are_found(target):
    func = _calling("extern f32 sqrtf(2.0f32)")
    assert list(checked_calls([func], as_target(target))) == [func]


def test_functions_that_nobody_has_are_refused():
    func = _calling("extern f32 no_such_function(2.0f32)")
    with pytest.raises(UserError, match="no_such_function"):
        list(checked_calls([func], as_target("llvm")))


_IMPORTED = "define float @twice(float %x) { ret float %x }"


def test_a_function_of_a_list_may_call_what_a_later_one_imports():
    caller = _calling("extern f32 twice(2.0f32)")
    importer = replace(_calling("2.0f32"), imports=(_IMPORTED,))
    llvm = as_target("llvm")
    assert list(checked_calls([caller, importer], llvm)) == [caller, importer]
    assert list(checked_calls(iter([importer, caller]), llvm)) == [importer, caller]
    with pytest.raises(UserError, match="twice"):
        list(checked_calls(iter([caller, importer]), llvm))


def test_each_function_is_yielded_before_the_next_one_is_asked_for():
    func = _calling("2.0f32")

    def made():
        yield func
        raise AssertionError("the second function was asked for")

    assert next(checked_calls(made(), as_target("llvm"))) is func


def test_functions_of_another_machine_are_left_to_its_linker():
    func = _calling("extern f32 no_such_function(2.0f32)")
    foreign = "riscv64" if machine() != "riscv64" else "aarch64"
    assert list(checked_calls([func], as_target(f"llvm -mtriple={foreign}-linux-gnu"))) == [func]
