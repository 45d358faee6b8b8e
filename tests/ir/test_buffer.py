"""Buffers and the expressions that read them."""

import pytest

from refcomp.foundation.dtype import BOOL, F32, I64
from refcomp.ir import buffer as module
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Broadcast, IntImm, Ramp, Var
from tests.ir.grammar import assert_grammar_holds

i = Var("i", I64)
A = Buffer("A", F32, (IntImm(8, I64),))


def test_the_grammar_holds():
    assert_grammar_holds(module)


def test_a_buffer_is_by_default_global_and_aligned_to_its_elements_only():
    assert (A.scope, A.alignment) == ("global", 0)


@pytest.mark.parametrize(
    ("load", "lanes"),
    [
        (BufferLoad(A, (i,)), 1),
        (BufferLoad(Buffer("S", F32, ()), ()), 1),
        (BufferLoad(A, (Ramp(i, IntImm(1, I64), 4),)), 4),
        (Load(A, i), 1),
        (Load(A, Ramp(i, IntImm(1, I64), 8), Broadcast(IntImm(1, BOOL), 8)), 8),
    ],
    ids=str,
)
def test_a_load_has_the_element_dtype_and_the_lanes_of_its_index(load, lanes):
    assert load.dtype == F32.with_lanes(lanes)
