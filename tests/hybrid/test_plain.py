# ruff: noqa: F821

import builtins

import numpy as np

from refcomp.hybrid import plain
from refcomp.hybrid.expressions import FUNCTIONS


def test_words_mean_what_python_does():
    assert (
        list(plain.NAMES["parallel"](3)) == list(plain.NAMES["bind"]("threadIdx.x", 3)) == [0, 1, 2]
    )
    assert plain.NAMES["output_tensor"]((2, 3), "bfloat16").dtype.name == "bfloat16"
    assert plain.NAMES["allocate"]((2,), "int8", "local").tolist() == [0, 0]
    assert plain.NAMES["int8"](300.0 - 256) == 44
    assert isinstance(plain.NAMES["float32"](1), np.float32)
    assert plain.NAMES["sigmoid"](0.0) == 0.5
    assert plain.NAMES["select"](True, 1, 2) == 1
    ones = plain.NAMES["popcount"](np.int16(-2))
    assert ones == 15
    assert ones.dtype == np.int16
    assert plain.NAMES["popcount"](np.uint64(2**64 - 1)) == 64


def test_the_words_are_in_reach_of_the_function_that_is_run():
    def function(n):
        c = output_tensor((n,), "int32")
        for i in unroll(n):
            c[i] = int32(sqrt(i * i * 1.0))
        return c

    assert plain.run(function, (3,)).tolist() == [0, 1, 2]


def test_what_is_compiled_can_be_run():
    assert set(FUNCTIONS) - set(dir(builtins)) <= set(plain.NAMES)
    for name in set(FUNCTIONS) - {"copysign", "hypot", "atan2", "select", "if_then_else"}:
        if name not in ("pow", "power", "min", "max", "acosh", "popcount"):
            plain.NAMES[name](np.float32(0.5))
