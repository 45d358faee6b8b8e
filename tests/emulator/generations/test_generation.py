"""What differs between the emulated GPUs stands in one place, and is whole."""

import pytest

from refcomp.emulator.code.code_object import Descriptor
from refcomp.emulator.execution.program import known_mnemonics
from refcomp.emulator.generations.generation import ARCHITECTURES, GENERATIONS
from refcomp.emulator.instructions.memory.buffers import SCRATCH, SCRATCH_DESCRIPTOR
from tests.codegen.one_operation import binary_cases
from tests.emulator.agreement import operations, whole_kernels


def _descriptor(rsrc1=0, rsrc3=0, properties=0):
    return Descriptor(0, 0, 0, 0, rsrc3, rsrc1, 0, properties, 0)


def test_generations_are_known_by_their_names():
    assert tuple(GENERATIONS) == ARCHITECTURES
    assert all(one.name == name for name, one in GENERATIONS.items())


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_what_instructions_are_renamed_to_is_known(name):
    one = GENERATIONS[name]
    rows = {*one.vector, *one.packed, *one.scalar, *one.save_exec, *one.idle, *one.special}
    patterns = ("global_", "ds_", "scratch_", "buffer_", "flat_", "s_load", "s_buffer", "v_dot")
    renamed = {to for to in one.dialect.renamed.values() if not to.startswith(patterns)}
    assert renamed <= rows and {*one.dialect.renamed} <= {*known_mnemonics(one)}


def test_gfx942_lays_accumulators_out_after_the_others():
    of = GENERATIONS["gfx942"].vectors
    assert of(_descriptor(rsrc1=3, rsrc3=7)) == 32  # four granules of 8, all before a0
    assert of(_descriptor(rsrc1=3, rsrc3=1)) == 256 + 24
    assert GENERATIONS["gfx942"].lanes(_descriptor(properties=1 << 10)) == 64


def test_gfx90a_reaches_private_memory_through_a_descriptor():
    one = GENERATIONS["gfx90a"]
    assert one.has_wave_offset and not GENERATIONS["gfx942"].has_wave_offset
    assert one.start[0] == SCRATCH_DESCRIPTOR and one.start[5] == (0, SCRATCH >> 32)
    assert "v_lshl_add_u64" not in one.vector and "v_cvt_f32_fp8" not in one.vector
    assert {"buffer_wbinvl1_vol", "buffer_invl2"} <= one.idle


def test_gfx1100_has_waves_of_32_lanes_where_the_kernel_says_so():
    one = GENERATIONS["gfx1100"]
    narrow, wide = _descriptor(rsrc1=3, properties=1 << 10), _descriptor(rsrc1=3)
    assert (one.lanes(narrow), one.lanes(wide)) == (32, 64)
    assert (one.vectors(narrow), one.vectors(wide)) == (32, 16)  # granules of 8 and of 4


@pytest.mark.rocm
def test_gfx1100_with_waves_of_64_lanes():
    """A remainder of f64 is a function of the device library, with a loop of lanes in it."""
    assert not whole_kernels("gfx1100:64").wrong
    assert not operations(binary_cases, 8, "gfx1100:64").wrong
