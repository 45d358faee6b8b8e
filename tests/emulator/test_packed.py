"""Packed instructions: both halves, each by the instruction on one."""

import numpy as np
import pytest

from refcomp.emulator.packed import PACKED
from tests.emulator.snippets import get, make_waves, put, run


@pytest.mark.parametrize("name", [n for n, (kind, _) in PACKED.items() if kind.endswith("16")])
def test_halves_are_computed_apart(name):
    kind, row = PACKED[name]
    count = len(row.sources)
    lanes = np.random.default_rng(2).integers(0, 0x7000, (3, 64, 2)).astype(np.uint16)
    waves = make_waves()
    for place in range(count):
        put(waves, 1 + place, lanes[place].view(np.uint32)[:, 0])
    run(waves, f"{name} v0, " + ", ".join(f"v{1 + place}" for place in range(count)))
    with np.errstate(all="ignore"):
        typed = [
            lanes[n].view({"f16": np.float16, "i16": np.int16}.get(kind, np.uint16))
            for n in range(count)
        ]
        wanted = row.function(*typed)
    assert (get(waves, 0).view(np.uint16).reshape(64, 2) == wanted.view(np.uint16)).all()
