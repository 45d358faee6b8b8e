"""Observers see what waves do: instructions, accesses, barriers and batches; and change nothing."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import OUT_OF_BOUNDS
from refcomp.emulator.machine.memory import BASE
from refcomp.emulator.machine.observation import Observer, kind_of_access
from tests.emulator.kernels import compiled_code, make_gpu
from tests.emulator.snippets import (
    assembly,
    execute,
    filled_memory,
    found,
    make_waves,
    put,
    set_mask,
    set_scalar,
)


class _Notes(Observer):
    """Writes down all that it is told."""

    def __init__(self):
        self.told, self.accesses = [], []

    def launched(self, loaded, request):
        self.told.append(("launched", request.kernel))

    def began(self, waves):
        self.told.append(("began", len(waves.groups)))

    def instruction(self, waves, instruction):
        self.told.append((instruction.mnemonic, waves.count()))

    def access(self, waves, access):
        self.accesses.append(access)

    def barrier(self, waves, rows):
        self.told.append(("barrier", rows.tolist()))

    def ended(self, waves):
        self.told.append(("ended", len(waves.groups)))


def test_each_instruction_is_told_before_it_runs():
    """The one that ends a block, and one that does nothing, too; barriers when waves go on."""
    notes = _Notes()
    lines = ["s_nop 0", "s_cbranch_scc1 1", "v_mov_b32_e32 v0, 1", "s_barrier", "s_endpgm"]
    waves = make_waves(2, observers=(notes,))
    waves.values.scc[1] = True
    waves.shadow.scc[:] = False
    execute(waves, assembly(*lines))
    assert notes.told == [
        *(("s_nop", 2), ("s_cbranch_scc1", 2), ("v_mov_b32", 1), ("s_barrier", 2)),
        *(("barrier", [0, 1]), ("s_endpgm", 2)),
    ]


def test_accesses_are_those_of_active_lanes_within_bounds():
    arena, place = filled_memory(bytes(64))
    address = place.address
    notes = _Notes()
    lines = ["global_load_dwordx2 v[2:3], v0, s[0:1]", "ds_write_b32 v1, v2"]
    lines += ["ds_add_u32 v1, v2", "s_load_dwordx4 s[4:7], s[0:1], 0x10", "s_endpgm"]
    waves = make_waves(1, shared=12, arena=arena, observers=(notes,))
    set_scalar(waves, 0, address, 2)
    set_mask(waves, np.arange(64) < 4)
    put(waves, 0, np.where(np.arange(64) == 2, 4096, 8 * np.arange(64)).astype(np.uint32))
    put(waves, 1, 4 * np.arange(64, dtype=np.uint32))
    execute(waves, assembly(*lines))
    load, write, add, scalar = notes.accesses
    assert (load.space, load.is_store, load.is_atomic, load.size) == ("global", False, False, 8)
    assert (load.index + BASE - address).tolist() == [0, 8, 24]
    assert np.flatnonzero(load.active).tolist() == [0, 1, 3]
    assert (write.space, write.is_store, write.index.tolist()) == ("shared", True, [0, 4, 8])
    assert (add.is_store, add.is_atomic, add.size) == (False, True, 4)
    assert np.flatnonzero(add.active).tolist() == [0, 1, 2]
    assert (scalar.size, (scalar.index + BASE - address).tolist()) == (16, [16])
    assert np.flatnonzero(scalar.active).tolist() == [0]
    assert [finding.kind for finding in found(waves)] == [OUT_OF_BOUNDS] * 3


def test_all_lanes_are_told_as_none():
    notes = _Notes()
    waves = make_waves(1, private=8, observers=(notes,), v1=np.uint32(0))
    execute(waves, assembly("scratch_store_dword off, v1, off offset:4", "s_endpgm"))
    (one,) = notes.accesses
    assert one.active is None and len(one.index) == 64 and one.index[0] == 4
    assert (one.space, one.is_store) == ("private", True)


@pytest.mark.parametrize(
    ("mnemonic", "is_store", "is_atomic"),
    [
        *(("global_load_dwordx4", False, False), ("ds_read2st64_b64", False, False)),
        *(("ds_write_b8", True, False), ("ds_store_b32", True, False)),
        *(("s_load_dwordx8", False, False), ("flat_store_short_d16_hi", True, False)),
        *(("ds_wrxchg_rtn_b32", False, True), ("ds_storexchg_rtn_b32", False, True)),
        *(("global_atomic_add", False, True), ("ds_max_rtn_i32", False, True)),
        *(("ds_load_2addr_stride64_b64", False, False), ("ds_store_2addr_b32", True, False)),
    ],
)
def test_kinds_of_accesses_follow_names(mnemonic, is_store, is_atomic):
    assert kind_of_access(mnemonic) == (is_store, is_atomic)


@pytest.mark.rocm
def test_a_launch_is_told_whole_and_nothing_changes():
    """Observers of a GPU see all launches, those of a launch that one alone."""
    always, once = _Notes(), _Notes()
    gpu = make_gpu(observers=[always])
    loaded = gpu.load(compiled_code("vector_add"))
    a, results = np.arange(100, dtype=np.float32), []
    for more in ([once], []):
        c = np.zeros_like(a)
        numbers = [np.int64(100), np.int64(2)]
        shape = (2, 1, 1), (64, 1, 1)
        report = gpu.run(loaded, "vector_add", *shape, [a, a, c, *numbers], observers=more)
        assert not report.findings and (c == 2 * a).all()
        results.append(report.steps)
    assert len(always.told) == 2 * len(once.told) and results[0] == results[1]
    assert once.told[:2] == [("launched", "vector_add"), ("began", 2)]
    assert once.told[-2:] == [("s_endpgm", 2), ("ended", 2)]
    stores = [one for one in once.accesses if one.is_store]
    assert len(stores) == 1 and len(stores[0].index) == 100


@pytest.mark.rocm
def test_without_observers_blocks_hold_instructions_alone():
    gpu = make_gpu()
    loaded = gpu.load(compiled_code("vector_add"))
    kernel = loaded.kernel("vector_add")
    program = loaded.program(kernel)
    entry = program.assembly.number_at(kernel.entry)
    plain, observed = (program.block(entry, is_observed) for is_observed in (False, True))
    assert plain.count == observed.count
    assert len(observed.runs) == len(plain.runs) + plain.count
