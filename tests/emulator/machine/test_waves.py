"""Waves of several groups: where their memory lies, and how findings name them."""

import numpy as np

from refcomp.emulator.code.findings import UNDEFINED
from tests.emulator.snippets import LANE, assembly, found, instruction, make_waves, set_mask


def test_findings_name_group_and_item():
    waves = make_waves(4, groups=2, code=assembly("f:", "s_nop 0", "s_endpgm"))
    where = np.zeros((4, 64), np.bool_)
    where[3, 5] = True
    waves.report_undefined(instruction("s_nop 0"), "a branch", where)
    (finding,) = found(waves)
    assert finding.group == (1, 0, 0) and finding.item == (5, 0, 1)
    assert finding.kind == UNDEFINED and finding.place == "f+0x0"


def test_each_group_has_its_shared_memory():
    waves = make_waves(4, groups=2, shared=20)
    index, wrong = waves.shared_index(np.full((4, 1), 8), 4, instruction("s_nop 0"))
    assert wrong is None and np.unique(index.reshape(4, 64)[:, 0]).tolist() == [8, 40]


def test_only_active_lanes_are_picked():
    waves = make_waves(private=8)
    set_mask(waves, LANE == 9)
    index, wrong = waves.private_index(LANE[None, :] * 0 + 4, 4, instruction("s_nop 0"))
    assert index.tolist() == [9 * 16 + 4] and wrong is None
    assert waves.pick(LANE[None, :], waves.active()).tolist() == [9]


def test_a_load_may_reach_beyond_the_end_in_aligned_bytes():
    """Compilers load five bytes as eight where eight are aligned; stores reach nowhere."""
    waves = make_waves(shared=21)
    _, wrong = waves.shared_index(np.full((1, 1), 16), 8, instruction("ds_read_b64 v[0:1], v2"))
    assert wrong is None and not found(waves)
    for line, place in [("ds_read_b64 v[0:1], v2", 17), ("ds_write_b64 v2, v[0:1]", 16)]:
        _, wrong = waves.shared_index(np.full((1, 1), place), 8, instruction(line))
        assert wrong.all(), line
    assert len(found(waves)) == 1 and "8 bytes at 17 of 21 bytes" in str(found(waves)[0])
