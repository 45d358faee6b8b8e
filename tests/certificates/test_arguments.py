"""What computations are run on: the same on every call, of every dtype."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.certificates.arguments import Arguments, size_sets, symbols_of
from refcomp.foundation.dtype import to_numpy
from refcomp.ir.expr import LT
from refcomp.ir.func import Requirement
from refcomp.oracle.exact.field import P
from tests.strategies.computation import DTYPES

N, M = rc.var("n"), rc.var("m")
ALPHA = rc.var("alpha", "float32")


def test_symbols_are_found_once_and_floats_are_none():
    a = rc.placeholder((N, M + N, 3), name="A")
    assert symbols_of([a, ALPHA, M]) == [N, M]


def test_sizes_are_small_and_then_beyond_the_greatest_factor():
    a = rc.placeholder((N, M), name="A")
    assert size_sets([a], []) == [{N: 5, M: 3}]
    assert size_sets([a], [4, 16, 2, 4096]) == [{N: 5, M: 3}, {N: 21, M: 19}]
    assert size_sets([rc.placeholder((4,))], [16]) == [{}]


def test_sizes_fulfil_what_is_required():
    a = rc.placeholder((N, M), name="A")
    fits = [Requirement(LT(N, M)), Requirement(LT(rc.var("other"), N))]
    assert size_sets([a], [], fits) == [{N: 5, M: 7}]
    assert size_sets([a], [16], fits) == [{N: 5, M: 7}, {N: 21, M: 23}]
    assert size_sets([a], [16], [Requirement(LT(N * 2, M))]) == [{N: 3, M: 7}]
    assert size_sets([a], [], [Requirement(LT(N, N))]) == [{N: 5, M: 3}]


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((N - 8,), {N: 10}),
        ((N // 16, M), {N: 20, M: 3}),
        ((N, M - N), {N: 5, M: 7}),
        ((N - N,), {N: 5}),  # empty whatever n is
    ],
)
def test_sizes_leave_no_extent_empty(shape, sizes):
    found, *_ = size_sets([rc.placeholder(shape, name="A")], [])
    assert found == sizes


@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "uint64", "uint16"])
def test_values_are_of_the_dtype_and_always_the_same(dtype):
    a = rc.placeholder((N, 40), dtype, name="A")
    given = Arguments((a, ALPHA, N), {N: 5})
    array, alpha, size = given.floats()
    assert array.dtype == to_numpy(a.dtype) and array.shape == (5, 40) and size == 5
    assert alpha.dtype == np.float32
    assert array.tobytes() == given.floats()[0].tobytes()
    assert len(np.unique(array.astype(np.float64))) >= 2


def test_integers_are_of_all_sizes_or_small_ones():
    a = rc.placeholder((1000,), "int32", name="A")
    assert np.abs(Arguments((a,), {}).floats()[0].astype(np.int64)).max() > 2**30
    small = Arguments((a,), {}, max_integer=1).floats()[0]
    assert set(small) == {0, 1}


def test_residues_stand_in_for_floats_alone():
    a, b = rc.placeholder((50,), name="A"), rc.placeholder((50,), "int8", name="B")
    given = Arguments((a, b, ALPHA), {})
    residues, integers, alpha = given.residues()
    assert residues.dtype == np.int64 and residues.min() >= 0 and P > residues.max() > 2**28
    assert integers.dtype == np.int8 and alpha.dtype == np.int64
