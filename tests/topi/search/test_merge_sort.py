"""Long axes: merges of sorted runs on every kind of target, with small chunks."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.operator import find_operator
from refcomp.topi.search import merge_sort, ordering
from refcomp.topi.search.merge_sort import merged_order
from tests.topi.agreement import WAYS, check_on, make_case

SEEDS = range(5)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(ordering, "LONGEST_RANKED_AXIS", 0)
    monkeypatch.setattr(merge_sort, "CHUNK", 1)
    monkeypatch.setattr(merge_sort, "SEGMENT", 2)


def _cases():
    return [make_case(find_operator(name), seed) for name in ("sort", "topk") for seed in SEEDS]


@pytest.mark.search
def test_small_merges_agree_with_the_meaning():
    check_on(WAYS["interp"], _cases())


@pytest.mark.llvm
def test_small_merges_on_the_host():
    check_on(WAYS["llvm"], _cases())


@pytest.mark.pocl
def test_small_merges_in_opencl():
    check_on(WAYS["opencl"], _cases())


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_small_merges_on_emulated_gpus(gpu):
    check_on(WAYS[gpu], _cases())


@pytest.mark.llvm
@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 65, 1000, 4097])
@pytest.mark.parametrize("is_ascend", [True, False])
def test_merges_of_all_lengths_are_stable(monkeypatch, size, is_ascend):
    monkeypatch.setattr(merge_sort, "CHUNK", 32)
    monkeypatch.setattr(merge_sort, "SEGMENT", 64)
    keys = rc.placeholder((2, size), name="keys")
    order = merged_order(keys, is_ascend)
    built = rc.build(rc.topi.schedule_llvm([order]), [keys, order], "llvm")
    given = np.random.default_rng(size).integers(0, 50, (2, size)).astype("float32")
    result = rc.array(np.zeros((2, size), "int32"))
    built(rc.array(given), result)
    signed = given if is_ascend else -given
    np.testing.assert_array_equal(result.asnumpy(), np.argsort(signed, axis=1, kind="stable"))


def test_symbolic_extents_are_refused():
    keys = rc.placeholder((rc.var("n"), 8), name="keys")
    with pytest.raises(UserError, match="a sorted extent must be a constant"):
        merged_order(keys, is_ascend=True)
