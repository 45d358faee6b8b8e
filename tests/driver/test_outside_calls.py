"""Calls that leave the loop IR: found or refused before a tool runs."""

import pytest

from refcomp.driver.backends import as_target
from refcomp.driver.outside_calls import check_outside_calls
from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func


def _calling(call):
    return parse_func(f"func f(A: f32[4] out) {{ for i in range(4) {{ A[i] = {call} }} }}")


@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_functions_of_the_host_are_found(target):
    func = _calling("extern f32 sqrtf(2.0f32)")
    assert check_outside_calls([func], as_target(target)) == ()


def test_functions_that_nobody_has_are_refused():
    func = _calling("extern f32 no_such_function(2.0f32)")
    with pytest.raises(UserError, match="no_such_function"):
        check_outside_calls([func], as_target("llvm"))
