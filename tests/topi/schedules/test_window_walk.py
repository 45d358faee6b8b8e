"""The walk of a sum: each step begins where nested loops say, from whichever step it starts."""

import itertools

import numpy as np
import pytest

import refcomp
from refcomp.ir.promotion import const
from refcomp.topi.schedules.window_walk import Digit, WindowWalk


@pytest.mark.parametrize("first", [0, 1, 5])
@pytest.mark.parametrize(
    "digits",
    [
        [Digit(12, 16)],
        [Digit(3, 100), Digit(4, 16)],
        [Digit(2, 1000), Digit(3, 100), Digit(2, 16)],
        [Digit(3, 1000), Digit(3, 7), Digit(1, 16)],
    ],
)
def test_places_are_those_of_nested_loops(digits, first) -> None:
    loops = [range(0, digit.extent * digit.stride, digit.stride) for digit in digits]
    expected = [sum(places) for places in itertools.product(*loops)][first:]

    def write(ins, outs):
        ib = refcomp.ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        walk = WindowWalk(ib, digits, const(first, "int64"))
        with ib.for_range(0, len(expected), "step") as step:
            out[step] = walk.place
            walk.advance()
        return ib.get()

    made = refcomp.extern((len(expected),), [], write, name="places", dtype="int64")
    found = np.zeros(len(expected), np.int64)
    refcomp.build(refcomp.create_schedule(made), [made], "interp")(found)
    np.testing.assert_array_equal(found, expected)
