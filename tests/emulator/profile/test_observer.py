"""Counts of kernels, beside what can be told by hand, and closed formulas of products."""

import numpy as np
import pytest

import refcomp
from refcomp.devices import rocm_emulator
from refcomp.emulator.profile import Profile
from refcomp.emulator.profile.observer import segment_of
from tests.codegen.device_kernels import TEXTS
from tests.emulator.profile.profiled import (
    COUNTERS,
    SHARED_COUNTERS,
    STRIDED,
    TRANSPOSE,
    profile_text,
)

pytestmark = pytest.mark.rocm


def _floats(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def _accesses(counts, space):
    return {one.access.is_store: one for one in counts.accesses(space)}


def test_a_vector_add():
    """100 elements by two waves: of the second one 36 lanes are active."""
    args = [_floats(100), _floats(100), np.zeros(100, np.float32), 100, 2]
    counts, report = profile_text(TEXTS["vector_add"], args, (2, 1, 1), (64, 1, 1))
    assert (counts.launches, counts.groups, counts.waves) == (1, 2, 2)
    assert (counts.grid, counts.block) == ((2, 1, 1), (64, 1, 1))
    loads = [one for one in counts.accesses("global") if not one.access.is_store]
    stores = [one for one in counts.accesses("global") if one.access.is_store]
    assert (len(loads), len(stores)) == (2, 1)
    for one in loads + stores:
        access = one.access
        assert (one.waves, one.lanes, access.lanes, access.bytes) == (2, 100, 100, 400)
        # 64 lanes fill two segments of 128 bytes, and the other 36 begin a second one.
        assert (access.transactions, access.least, access.stride) == (4, 4, 4)
    # Four segments of A, of B and of C, and one of the kernel's arguments.
    assert (counts.read, counts.written) == ((4 + 4 + 1) * 128, 4 * 128)
    assert sum(counts.by_class().values()) == report.steps
    assert counts.by_class()["global memory"] == 6
    assert counts.fmas == 0
    (add,) = [one for one in counts.instructions if "add_f32" in one.instruction.mnemonic]
    assert (add.waves, add.lanes, add.kind) == (2, 100, "other VALU")


@pytest.mark.parametrize(("pitch", "clocks"), [(32, 64), (33, 2)])
def test_a_transpose_with_and_without_padding(pitch, clocks):
    """64 waves of two rows; a column of a tile lies in one bank, unless rows are 33 long."""
    b = np.zeros((64, 64), np.float32)
    text = TRANSPOSE.replace("PITCH", str(pitch))
    counts, _ = profile_text(text, [_floats(64, 64), b], (2, 2, 1), (32, 32, 1))
    assert (b == _floats(64, 64).T).all()
    assert (counts.groups, counts.waves) == (4, 64)
    shared = _accesses(counts, "shared")
    write, read = shared[True].access, shared[False].access
    assert (write.waves, write.clocks, write.conflicts) == (64, 64 * 2, 0)
    assert (read.waves, read.clocks, read.conflicts) == (64, 64 * clocks, 64 * (clocks - 2))
    for access in (one.access for one in counts.accesses("global")):
        assert (access.transactions, access.least, access.bytes) == (128, 128, 64 * 64 * 4)
    assert counts.active_lanes == 1


def test_a_strided_copy():
    """Each lane reads a segment of its own."""
    b = np.zeros(256, np.float32)
    counts, _ = profile_text(STRIDED, [_floats(8192), b], (4, 1, 1), (64, 1, 1))
    found = _accesses(counts, "global")
    load, store = found[False].access, found[True].access
    assert (load.transactions, load.least, load.stride) == (256, 8, 128)
    assert (store.transactions, store.least, store.stride) == (8, 8, 4)
    assert counts.read == 256 * 128 + 128


def test_updates_of_global_memory():
    h = np.zeros(8, np.int32)
    counts, _ = profile_text(COUNTERS, [h], (4, 1, 1), (64, 1, 1))
    assert h.tolist() == [4 * sum(range(k, 64, 8)) for k in range(8)]
    (update,) = [one.access for one in counts.accesses("global") if one.access.is_atomic]
    assert (update.waves, update.lanes, update.transactions) == (4, 256, 4)
    assert counts.written == 128 and counts.read == 2 * 128


def test_updates_of_shared_memory_take_turns():
    """Of 32 lanes that go together four update each counter."""
    counts, _ = profile_text(SHARED_COUNTERS, [np.zeros(8, np.int32)], (4, 1, 1), (64, 1, 1))
    (update,) = [one.access for one in counts.accesses("shared") if one.access.is_atomic]
    assert (update.waves, update.clocks, update.conflicts) == (4, 4 * 2 * 4, 4 * 2 * 3)


def test_a_small_product_from_its_text():
    k = 32
    args = [_floats(32, k), _floats(k, 32), np.zeros((32, 32), np.float32), k]
    counts, report = profile_text(TEXTS["matmul"], args, (2, 2, 1), (16, 16, 1))
    stores = [one for one in counts.accesses("shared") if one.access.is_store]
    # Each of 4 groups brings 2 tiles of A and of B, an element a thread.
    assert sum(one.lanes for one in stores) == 4 * 2 * 2 * 256
    assert sum(counts.by_class().values()) == report.steps
    reads = sum(one.access.bytes for one in counts.accesses("global") if not one.access.is_store)
    assert reads == 4 * 2 * 2 * 256 * 4


def _product(n, m, k, dtype="float32"):
    """C[n, m] = A[n, k] B[k, m], a thread for each element, and how it is scheduled."""
    a, b = refcomp.placeholder((n, k), dtype, "A"), refcomp.placeholder((k, m), dtype, "B")
    r = refcomp.reduce_axis((0, k), "r")
    c = refcomp.compute((n, m), lambda i, j: refcomp.sum(a[i, r] * b[r, j], axis=r), "C")
    schedule = refcomp.create_schedule(c)
    by, bx, ty, tx = schedule[c].tile(*c.op.axis, 4, 64)
    for axis, tag in zip(
        (by, bx, ty, tx), ("blockIdx.y", "blockIdx.x", "threadIdx.y"), strict=False
    ):
        schedule[c].bind(axis, refcomp.thread_axis(tag))
    schedule[c].bind(tx, refcomp.thread_axis("threadIdx.x"))
    with refcomp.build_options(contract=True):
        return refcomp.build(schedule, [a, b, c], "rocm -mcpu=gfx942", name="product")


@pytest.mark.parametrize("shape", [(8, 64, 24), (12, 128, 16)])
def test_a_product_does_as_many_multiply_adds_as_its_formula(shape):
    n, m, k = shape
    profile = Profile()
    gpu = rocm_emulator("gfx942", profile=profile)
    values = [_floats(n, k), _floats(k, m), np.zeros((n, m), np.float32)]
    arrays = [refcomp.array(value, gpu) for value in values]
    module = _product(n, m, k)
    module(*arrays)
    (counts,) = profile.kernels
    assert counts.fmas == n * m * k
    assert counts.by_class()["VALU FMA"] * 64 == n * m * k
    # Each statement's line is told; most instructions come from the sum.
    lines = module.imported_modules[0].get_source("kernels").splitlines()
    by_source = counts.by_source()
    most = max(by_source, key=by_source.get)
    assert "fma(" in lines[int(most.rpartition(":")[2]) - 1]
    module(*arrays)
    assert [one.fmas for one in profile.kernels] == [2 * n * m * k]
    assert profile.kernels[0].launches == 2


def test_a_listing_is_the_whole_kernel_and_no_more():
    """What did not run, too; the padding behind the end of the code is left out."""
    args = [_floats(64), _floats(64), np.zeros(64, np.float32), 0, 1]
    counts, _ = profile_text(TEXTS["vector_add"], args, (1, 1, 1), (64, 1, 1))
    texts = [one.instruction.mnemonic for one in counts.listing()]
    assert texts[-1] == "s_endpgm" and texts.count("global_load_dword") == 2
    assert [one.waves for one in counts.listing() if "global" in one.instruction.mnemonic] == [
        0
    ] * 3
    assert counts.listing()[0].waves == 1


def test_what_a_launch_touched_is_counted_once_however_often_it_is_asked():
    args = [_floats(100), _floats(100), np.zeros(100, np.float32), 100, 2]
    counts, _ = profile_text(TEXTS["vector_add"], args, (2, 1, 1), (64, 1, 1))
    before = counts.read
    assert counts.read == before == 9 * 128


def test_segments_are_those_of_the_gpu():
    assert [segment_of(name) for name in ("gfx90a", "gfx942", "gfx1100")] == [64, 128, 128]
