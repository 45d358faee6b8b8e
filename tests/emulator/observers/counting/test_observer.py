"""Counts of kernels, beside what can be told by hand, and closed formulas of products."""

from types import SimpleNamespace

import numpy as np
import pytest

import refcomp
from refcomp.driver.devices import rocm_emulator
from refcomp.emulator.execution.launch import LaunchRequest
from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.machine.observation import Access
from refcomp.emulator.observers.counting import Profile, WaveCounting
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from tests.codegen.device_kernels import TEXTS
from tests.emulator.observers.counting.profiled import (
    COUNTERS,
    SHARED_COUNTERS,
    STRIDED,
    TRANSPOSE,
    profile_text,
)
from tests.emulator.snippets import assembly
from tests.walkthroughs import walkthrough

pytestmark = pytest.mark.rocm


def _floats(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def _accesses(counts, space):
    return {one.access.is_store: one for one in counts.accesses(space)}


def _segments(*sizes, segment):
    """As many as pieces of these sizes fill, each from the beginning of one on."""
    return sum(-(-size // segment) for size in sizes)


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_a_vector_add(gpu):
    """100 elements by 128 threads: what the last 28 would do, a guard leaves out."""
    args = [_floats(100), _floats(100), np.zeros(100, np.float32), 100, 2]
    counts, report = profile_text(TEXTS["vector_add"], args, (2, 1, 1), (64, 1, 1), gpu)
    # Lanes that are active in each wave.
    active = {64: (64, 36), 32: (32, 32, 32, 4)}[counts.wave_lanes]
    waves, segment = len(active), counts.segment
    assert (counts.launches, counts.groups, counts.waves) == (1, 2, waves)
    assert counts.is_on_pairs == (gpu == "gfx1100") and counts.shared_bytes == 0
    assert (counts.grid, counts.block) == ((2, 1, 1), (64, 1, 1))
    loads = [one for one in counts.accesses("global") if not one.access.is_store]
    stores = [one for one in counts.accesses("global") if one.access.is_store]
    assert (len(loads), len(stores)) == (2, 1)
    touched = _segments(*(4 * lanes for lanes in active), segment=segment)
    for one in loads + stores:
        access = one.access
        assert (one.waves, one.lanes, access.lanes, access.bytes) == (waves, 100, 100, 400)
        assert (access.transactions, access.least, access.stride) == (touched, touched, 4)
    whole = _segments(400, segment=segment) * segment
    # A, B and the kernel's arguments, which take one.
    assert (counts.read, counts.written) == (2 * whole + segment, whole)
    assert sum(counts.by_class().values()) == report.steps
    assert counts.by_class()["global memory"] == 3 * waves
    assert counts.fmas == 0
    (add,) = [one for one in counts.instructions if "add_f32" in one.instruction.mnemonic]
    assert (add.waves, add.lanes, add.kind) == (waves, 100, "other VALU")


@pytest.mark.parametrize("gpu", GENERATIONS)
@pytest.mark.parametrize(("pitch", "ways"), [(32, 32), (33, 1)])
def test_a_transpose_with_and_without_padding(gpu, pitch, ways):
    """128 rows of 32 lanes; a column of a tile lies in one bank, unless rows are 33 long."""
    b = np.zeros((64, 64), np.float32)
    text = TRANSPOSE.replace("PITCH", str(pitch))
    counts, _ = profile_text(text, [_floats(64, 64), b], (2, 2, 1), (32, 32, 1), gpu)
    assert (b == _floats(64, 64).T).all()
    assert (counts.groups, counts.waves) == (4, 4096 // counts.wave_lanes)
    shared = _accesses(counts, "shared")
    write, read = shared[True].access, shared[False].access
    assert (write.waves, write.clocks, write.conflicts) == (counts.waves, 128, 0)
    assert (read.waves, read.clocks, read.conflicts) == (counts.waves, 128 * ways, 128 * (ways - 1))
    moved = 64 * 64 * 4
    for access in (one.access for one in counts.accesses("global")):
        assert access.transactions * counts.segment == access.bytes == moved
        assert access.least == access.transactions
    assert counts.active_lanes == 1


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_a_strided_copy(gpu):
    """Each lane reads a segment of its own."""
    b = np.zeros(256, np.float32)
    counts, _ = profile_text(STRIDED, [_floats(8192), b], (4, 1, 1), (64, 1, 1), gpu)
    found = _accesses(counts, "global")
    load, store = found[False].access, found[True].access
    dense = 1024 // counts.segment
    assert (load.transactions, load.least, load.stride) == (256, dense, 128)
    assert (store.transactions, store.least, store.stride) == (dense, dense, 4)
    assert counts.read == (256 + 1) * counts.segment


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_updates_of_global_memory(gpu):
    h = np.zeros(8, np.int32)
    counts, _ = profile_text(COUNTERS, [h], (4, 1, 1), (64, 1, 1), gpu)
    assert h.tolist() == [4 * sum(range(k, 64, 8)) for k in range(8)]
    (update,) = [one.access for one in counts.accesses("global") if one.access.is_atomic]
    assert (update.waves, update.lanes, update.transactions) == (counts.waves, 256, counts.waves)
    assert update.least == update.transactions  # which 64 lanes of other bytes would not fit into
    assert (counts.written, counts.read) == (counts.segment, 2 * counts.segment)


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_updates_of_shared_memory_take_turns(gpu):
    """Of 32 lanes that go together four update each counter; there are eight such 32."""
    args = [np.zeros(8, np.int32)]
    counts, _ = profile_text(SHARED_COUNTERS, args, (4, 1, 1), (64, 1, 1), gpu)
    (update,) = [one.access for one in counts.accesses("shared") if one.access.is_atomic]
    assert (update.waves, update.clocks, update.conflicts) == (counts.waves, 8 * 4, 8 * 3)


def _product(n, m, k, gpu):
    """C[n, m] = A[n, k] B[k, m], a thread for each element, and how it is scheduled."""
    a, b = refcomp.placeholder((n, k), name="A"), refcomp.placeholder((k, m), name="B")
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
        return refcomp.build(schedule, [a, b, c], f"rocm -mcpu={gpu}", name="product")


@pytest.mark.parametrize("gpu", GENERATIONS)
@pytest.mark.parametrize("shape", [(8, 64, 24), (12, 128, 16)])
def test_a_product_does_as_many_multiply_adds_as_its_formula(shape, gpu):
    n, m, k = shape
    profile = Profile()
    device = rocm_emulator(gpu, profile=profile)
    values = [_floats(n, k), _floats(k, m), np.zeros((n, m), np.float32)]
    arrays = [refcomp.array(value, device) for value in values]
    module = _product(n, m, k, gpu)
    module(*arrays)
    (counts,) = profile.kernels
    assert counts.fmas == n * m * k
    # Each lane's loads of A and B, one for each multiply-add at most.
    loads = [one for one in counts.accesses("global") if not one.access.is_store]
    assert sum(one.access.bytes for one in loads) <= 2 * 4 * n * m * k
    # Each statement's line is told; most instructions come from the sum.
    lines = module.imported_modules[0].get_source("kernels").splitlines()
    by_source = counts.by_source()
    most = max(by_source, key=by_source.get)
    assert "fma(" in lines[int(most.rpartition(":")[2]) - 1]
    module(*arrays)
    assert [one.fmas for one in profile.kernels] == [2 * n * m * k]
    assert profile.kernels[0].launches == 2


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_a_product_of_tiles_by_its_formulas(gpu):
    """Groups of 16 x 16 threads bring each row and column to shared memory once a tile."""
    n, k, tile = 32, 48, 16
    args = [_floats(n, k), _floats(k, n), np.zeros((n, n), np.float32), k]
    grid = (n // tile, n // tile, 1)
    counts, report = profile_text(TEXTS["matmul"], args, grid, (tile, tile, 1), gpu)
    stores = [one for one in counts.accesses("shared") if one.access.is_store]
    reads = [one for one in counts.accesses("shared") if not one.access.is_store]
    # Each element of A and B is brought by n / tile groups, and read by tile threads of each.
    brought = 2 * n * k * (n // tile)
    assert sum(one.lanes for one in stores) == brought
    assert sum(one.access.bytes for one in reads) == 4 * brought * tile
    loads = sum(one.access.bytes for one in counts.accesses("global") if not one.access.is_store)
    assert loads == 4 * brought
    assert sum(counts.by_class().values()) == report.steps


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
    found = {name: one.segment for name, one in GENERATIONS.items()}
    assert found == {"gfx942": 128, "gfx90a": 64, "gfx1100": 128}


@pytest.mark.parametrize(("gpu", "clocks"), [("gfx942", 8), ("gfx90a", 8), ("gfx1100", 16)])
def test_waves_of_64_lanes_read_shared_memory_as_the_gpu_does(gpu, clocks):
    """Lanes 0 to 3 and 20 to 23 go together on CDNA, 0 to 7 on RDNA, also in waves of 64."""
    code = assembly("begin:", "ds_read_b128 v[0:3], v4")
    loaded = SimpleNamespace(
        generation=GENERATIONS[gpu],
        kernel=lambda name: SimpleNamespace(entry=0, descriptor=SimpleNamespace(is_on_pairs=False)),
        program=lambda kernel: SimpleNamespace(assembly=code),
    )
    profile = Profile()
    observer = WaveCounting(profile)
    observer.launched(loaded, LaunchRequest("begin", (1, 1, 1), (64, 1, 1), b""))
    # Of each 32 lanes the first 16 read from the lower banks, the others from the upper ones.
    four, place = np.divmod(np.arange(64), 4)
    index = 128 * four + 64 * (four % 8 >= 4) + 16 * place
    observer.access(None, Access(code.instruction(0), "shared", False, False, 16, index, None))
    (counts,) = profile.kernels
    (read,) = counts.accesses("shared")
    assert read.access.clocks == clocks


def test_an_access_that_does_not_say_to_which_memory_counts_for_each():
    code = assembly("begin:", "flat_load_dword v0, v[2:3]")
    loaded = SimpleNamespace(
        generation=GENERATIONS["gfx942"],
        kernel=lambda name: SimpleNamespace(entry=0, descriptor=SimpleNamespace(is_on_pairs=False)),
        program=lambda kernel: SimpleNamespace(assembly=code),
    )
    profile = Profile()
    observer = WaveCounting(profile)
    observer.launched(loaded, LaunchRequest("begin", (1, 1, 1), (64, 1, 1), b"", shared_bytes=128))
    assert profile.kernels[0].shared_bytes == 128
    lanes = np.arange(64)
    for space, stride, low in (("shared", 4, True), ("global", 128, False), ("shared", 4, True)):
        active = (lanes < 32) == low
        index = stride * lanes[active]
        observer.access(
            None, Access(code.instruction(0), space, False, False, 4, index, active[None])
        )
    (counts,) = profile.kernels
    ((shared,), (load,)) = (
        [one.access for one in counts.accesses(space)] for space in ("shared", "global")
    )
    assert (shared.lanes, shared.clocks, shared.conflicts) == (64, 2, 0)
    assert (load.lanes, load.transactions, load.stride) == (32, 32, 128)
    assert not [*counts.accesses("private")]


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_matrix_instructions_do_as_many_multiply_adds_as_the_formula(gpu):
    """Whatever the instruction: it alone does all that the product needs."""
    matrix_cores, n, depth = walkthrough("matrix_cores"), 64, 32
    done = 0
    for name, one in matrix_cores["INSTRUCTIONS"]:
        if name != gpu:
            continue
        schedule, args = matrix_cores["schedule_product"](one, n, depth)
        module, profile = refcomp.build(schedule, args, f"rocm -mcpu={gpu}"), Profile()
        device = rocm_emulator(gpu, profile=profile)
        dtype = to_numpy(as_dtype(one.dtype))
        values = [np.ones((n, depth), dtype), np.ones((depth, n), dtype)]
        arrays = [refcomp.array(v, device) for v in (*values, np.zeros((n, n), np.float32))]
        module(*arrays)
        (counts,) = profile.kernels
        assert (arrays[2].asnumpy() == depth).all()
        assert counts.fmas == n * n * depth, one.name
        assert counts.by_class()["MFMA"] * one.size**2 * one.step == n * n * depth
        done += 1
    assert done


def test_a_profile_takes_no_arguments() -> None:
    with pytest.raises(UserError) as caught:
        Profile(3)
    assert str(caught.value).startswith(
        "a Profile takes no arguments\n"
        "  where: Profile(3)\n"
        "  why: it counts the kernels that run while it observes\n"
        "  what to do: "
    )
