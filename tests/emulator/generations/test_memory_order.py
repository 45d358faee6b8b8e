"""Which instructions write caches back or drop them, and which accesses are atomic."""

from refcomp.emulator.code.code_object import Descriptor
from refcomp.emulator.generations.memory_order import GFX11_ORDER, GFX90A_ORDER, GFX942_ORDER
from tests.emulator.snippets import instruction


def test_caches_are_written_back_and_dropped_for_the_whole_device():
    assert GFX942_ORDER.is_write_back(instruction("buffer_wbl2 sc1"))
    assert GFX942_ORDER.is_write_back(instruction("buffer_wbl2 sc0 sc1"))
    assert not GFX942_ORDER.is_write_back(instruction("buffer_wbl2 sc0"))
    assert not GFX90A_ORDER.is_write_back(instruction("buffer_wbl2 sc1"))
    assert GFX942_ORDER.is_invalidation(instruction("buffer_inv sc1"))
    assert not GFX942_ORDER.is_invalidation(instruction("buffer_inv sc0"))
    assert GFX90A_ORDER.is_invalidation(instruction("buffer_wbinvl1_vol"))
    assert GFX11_ORDER.is_invalidation(instruction("buffer_gl1_inv"))
    assert not GFX11_ORDER.is_invalidation(instruction("buffer_gl0_inv"))
    assert GFX11_ORDER.is_own_invalidation(instruction("buffer_gl0_inv"))
    assert not GFX942_ORDER.is_own_invalidation(instruction("buffer_inv sc1"))


def test_atomic_loads_and_stores_are_marked():
    assert GFX942_ORDER.is_atomic(instruction("global_load_dword v0, v1, s[0:1] sc1"))
    assert not GFX942_ORDER.is_atomic(instruction("global_load_dword v0, v1, s[0:1] nt"))
    assert GFX11_ORDER.is_atomic(instruction("global_load_b32 v0, v1, s[0:1] glc"))
    assert GFX942_ORDER.are_stores_marked and not GFX11_ORDER.are_stores_marked


def test_one_mark_is_for_a_group_alone():
    for line, is_for_all in (("sc0", False), ("sc1", True), ("sc0 sc1", True)):
        one = instruction(f"global_store_dword v0, v1, s[0:1] {line}")
        assert GFX942_ORDER.is_atomic(one) and GFX942_ORDER.is_for_device(one) is is_for_all
    glc = instruction("global_load_dword v0, v1, s[0:1] glc")
    assert GFX11_ORDER.is_for_device(glc) and GFX90A_ORDER.is_for_device(glc)


def test_a_kernel_on_one_compute_unit_has_one_cache():
    one, pair = (Descriptor(0, 0, 0, 0, 0, rsrc1, 0, 0, 0) for rsrc1 in (0, 1 << 29))
    assert GFX11_ORDER.keeps_order(one) and not GFX11_ORDER.keeps_order(pair)
    assert GFX11_ORDER.has_stale_reads(pair) and not GFX11_ORDER.has_stale_reads(one)
    assert not GFX942_ORDER.has_stale_reads(pair)
    assert GFX942_ORDER.keeps_order(one) and GFX942_ORDER.keeps_order(pair)


def test_waves_of_a_group_may_be_split():
    whole, split = (Descriptor(0, 0, 0, 0, rsrc3, 0, 0, 0, 0) for rsrc3 in (0, 1 << 16))
    assert GFX90A_ORDER.is_split(split) and GFX942_ORDER.is_split(split)
    assert not GFX90A_ORDER.is_split(whole) and not GFX11_ORDER.is_split(split)
