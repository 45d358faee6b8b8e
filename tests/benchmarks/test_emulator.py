"""What is timed of the emulator: kernels that are right, and how their work is counted."""

import numpy as np
import pytest

from benchmarks.emulator import workload
from benchmarks.emulator.kernels import build_product, code_of, product, vector_add
from benchmarks.emulator.workload import decode, lane_instructions, multiplications_and_additions
from benchmarks.run import WORKLOADS
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.cache import Cache

pytestmark = pytest.mark.rocm


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("is_fused", [False, True])
def test_the_product_is_numpys_and_its_work_is_counted(each, is_fused):
    ready = product(32, each, "gfx942", is_watched=True, is_fused=is_fused)
    groups = (2 // each) ** 2
    assert ready.grid == (2 // each, 2 // each, 1) and ready.block == (16, 16, 1)
    lanes = lane_instructions(ready)
    # At least a multiply-add for each, of which an instruction has two; four waves a group.
    assert lanes % (64 * 4 * groups) == 0 and lanes > 32**3 / 2
    executed = {mnemonic for mnemonic, _ in ready.loaded.executed}
    assert is_fused == bool({"v_fmac_f32", "v_fma_f32", "v_pk_fma_f32"} & executed)


def test_a_wrong_result_is_not_timed():
    ready = vector_add(200, "gfx942", is_watched=False)
    assert lane_instructions(ready) > 200
    ready.arrays[0][3] = 9
    ready.run()
    ready.arrays[0][3] = 1
    ready.arrays[2].flags.writeable = False
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 200"):
        lane_instructions(ready)


def test_numpy_does_as_many_elements(monkeypatch):
    pieces = []
    monkeypatch.setattr(np, "multiply", lambda a, b, out: pieces.append(out.size))
    multiplications_and_additions(3 * 256 * 64 + 5)()
    assert pieces == [256 * 64] * 3


def test_decoding_tells_the_number_of_instructions(tmp_path):
    binary = Binary(code_of(build_product(32, 1, "gfx942")), "hsaco")
    counts = {decode(binary, Cache(tmp_path)) for _ in range(2)}
    assert len(counts) == 1 and 100 < counts.pop() < 1000


def test_the_rows_say_what_they_are_held_against():
    rows = [
        workload._rate_row(product(32, 1, "gfx942", is_watched=True), "checked", 1, 1e3),
        workload._launch_row(2),
        workload._decoding_row(1),
    ]
    assert {row.workload for row in rows} == {"emulator"} and "emulator" in WORKLOADS
    rate, launch, decoding = rows
    assert rate.bar.at_most == pytest.approx(1e6 * rate.work.amount / 1e3)
    assert rate.work.unit == "M lane instructions" and rate.peer == "numpy, as many elements"
    assert launch.bar.at_most == 5e-3 and launch.ours.rounds == 2
    assert decoding.peer == "not known" and decoding.bar is None
