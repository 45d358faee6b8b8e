"""Positions of set flags: counted in pairs, and by chunks on every kind of target."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.te.operation import ExternOp, reachable_operations
from refcomp.topi.operator import find_operator
from refcomp.topi.search import compaction
from refcomp.topi.search.compaction import LONGEST_COUNTED, set_positions
from tests.topi.agreement import WAYS, check_on, make_case

SEEDS = range(6)


def _is_extern(size):
    flags = rc.placeholder((size,), "int32", name="flags")
    operations = reachable_operations([set_positions(flags)[0].op])
    return any(isinstance(op, ExternOp) for op in operations)


def test_only_long_inputs_are_counted_by_chunks():
    assert not _is_extern(LONGEST_COUNTED)
    assert _is_extern(LONGEST_COUNTED + 1)
    assert not _is_extern(rc.var("n"))


@pytest.mark.llvm
@pytest.mark.parametrize("size", [0, 1, 256, 257, 512, 10000])
@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_positions_of_set_flags(size, share):
    flags = rc.placeholder((size,), "int32", name="flags")
    positions, count = set_positions(flags)
    outputs = [rc.compute((size,), lambda i: positions[i], name="copy"), count]
    built = rc.build(rc.topi.schedule_llvm(outputs), [flags, *outputs], "llvm")
    given = (np.random.default_rng(size).random(size) < share).astype("int32")
    positions = rc.array(np.full(size, 77))
    count = rc.array(np.full(1, 77))
    built(rc.array(given), positions, count)
    (expected,) = np.nonzero(given)
    assert count.asnumpy().tolist() == [len(expected)]
    assert positions.asnumpy()[: len(expected)].tolist() == expected.tolist()
    assert not positions.asnumpy()[len(expected) :].any()


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(compaction, "LONGEST_COUNTED", 0)
    monkeypatch.setattr(compaction, "CHUNK", 3)


def _cases():
    names = ("nonzero", "compress")
    return [make_case(find_operator(name), seed) for name in names for seed in SEEDS]


@pytest.mark.search
def test_small_chunks_agree_with_the_meaning(small_chunks):
    check_on(WAYS["interp"], _cases())


@pytest.mark.llvm
def test_small_chunks_on_the_host(small_chunks):
    check_on(WAYS["llvm"], _cases())


@pytest.mark.pocl
def test_small_chunks_in_opencl(small_chunks):
    check_on(WAYS["opencl"], _cases())


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_small_chunks_on_emulated_gpus(small_chunks, gpu):
    check_on(WAYS[gpu], _cases())
