"""Packed instructions: both halves, each by the instruction on one."""

import numpy as np
import pytest

from refcomp.emulator.instructions.tables.packed import PACKED
from tests.emulator.snippets import get, make_waves, put, run


@pytest.mark.parametrize("name", [n for n, row in PACKED.items() if row.kind.endswith("16")])
def test_halves_are_computed_apart(name):
    kind, row = PACKED[name].kind, PACKED[name].half
    count = len(row.sources)
    total = count + len(row.implicit)  # what the result was
    lanes = np.random.default_rng(2).integers(0, 0x7000, (3, 64, 2)).astype(np.uint16)
    waves = make_waves()
    for place in range(total):
        put(waves, (1 + place) % (count + 1), lanes[place].view(np.uint32)[:, 0])
    run(waves, f"{name} v0, " + ", ".join(f"v{1 + place}" for place in range(count)))
    with np.errstate(all="ignore"):
        typed = [
            lanes[n].view({"f16": np.float16, "i16": np.int16}.get(kind, np.uint16))
            for n in range(total)
        ]
        wanted = row.function(*typed)
    assert (get(waves, 0).view(np.uint16).reshape(64, 2) == wanted.view(np.uint16)).all()


def test_sums_of_halves_may_saturate():
    waves = make_waves(v1=np.uint32(0x0005_FFFF))
    run(waves, "v_pk_add_u16 v0, v1, v1 clamp", "v_pk_sub_i16 v2, 0, v1 op_sel_hi:[0,1] clamp")
    assert get(waves, 0)[0] == 0x000A_FFFF and get(waves, 2)[0] == 0xFFFB_0001
