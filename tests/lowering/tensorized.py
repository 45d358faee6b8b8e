"""What the tests of tensorize share: numbers, a run on both targets, what a refusal says."""

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from tests.quotations import quoted


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


def check(func, inputs, scalars, expected, targets=("interp", "llvm")):
    """Products of small whole numbers are exact, in any order."""
    verify(func, "nested")
    for target in targets:
        result = np.full(expected.shape, 77, expected.dtype)
        run = (lambda *args: interpret(func, args)) if target == "interp" else refcomp.build(func)
        run(*inputs, result, *scalars)
        assert (result == expected).all(), target


def refusal(s, args):
    with pytest.raises(UserError, match=r"cannot tensorize axis \S+ of stage") as refused:
        refcomp.lower(s, args)
    assert ".tensorize(" in quoted(refused.value, "tensorized here")
    return f"{refused.value.why}; {refused.value.remedy}"
