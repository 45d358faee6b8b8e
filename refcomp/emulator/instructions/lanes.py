"""Running an instruction in some of the active lanes."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.code.assembly import EXEC
from refcomp.emulator.machine.arrays import Mask, bits_of_mask
from refcomp.emulator.machine.waves import Run, Waves


def in_lanes(waves: Waves, mask: Mask, run: Run) -> None:
    """Run an instruction with `mask`, bool [wave, lane], instead of EXEC."""
    saved = np.array(waves.values.scalar(EXEC, waves.mask_bits, waves.rows))
    waves.write_scalar(EXEC, waves.mask_bits, bits_of_mask(mask))
    run(waves)
    waves.write_scalar(EXEC, waves.mask_bits, saved)
