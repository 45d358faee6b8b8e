"""Public figures of AMD GPUs, by which an estimate turns counts into time.

Sources: AMD's data sheets of the Instinct MI210, MI250X and MI300X and the product page of the
Radeon RX 7900 XTX (units, clocks, peak rates, bandwidths); the white papers of CDNA 2, CDNA 3 and
RDNA 3 and the "ROCm Compute Profiler" documentation (bytes a clock of LDS and L1). What a unit does
in a clock is the peak rate divided by units and clock. The clock is the highest one: real ones are
lower under load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.errors import UserError

_CDNA2 = {"f64": 128, "f32": 128, "f16": 512, "bf16": 512, "i8": 512}
_CDNA3 = {"f64": 128, "f32": 128, "xf32": 512, "f16": 1024, "bf16": 1024, "i8": 2048, "fp8": 2048}
_RDNA3 = {"f16": 256, "bf16": 256, "i8": 256}


@dataclass(frozen=True, slots=True)
class Card:
    """Of a compute unit in a clock: `lanes` of vector instructions, of which f64 ones at
    `f64_rate`; multiply-adds of matrix instructions by dtype; bytes of LDS and of the vector L1
    cache. `units` of them at `gigahertz`; `bandwidth` of the memory in GB/s."""

    name: str
    mcpu: str
    units: int
    gigahertz: float
    lanes: int
    f64_rate: float
    matrix: Mapping[str, int]
    shared_bytes: int
    cache_bytes: int
    bandwidth: float

    @property
    def peak(self) -> float:
        """Multiply-adds of f32 vector instructions a second, one a lane."""
        return self.units * self.lanes * self.gigahertz * 1e9


# Of the MI250X one of its two dies: a kernel runs on one.
CARDS = {
    card.name: card
    for card in (
        Card("MI210", "gfx90a", 104, 1.7, 64, 1, _CDNA2, 128, 64, 1638),
        Card("MI250X", "gfx90a", 110, 1.7, 64, 1, _CDNA2, 128, 64, 1638),
        Card("MI300X", "gfx942", 304, 2.1, 64, 1, _CDNA3, 128, 64, 5300),
        Card("RX 7900 XTX", "gfx1100", 96, 2.5, 64, 1 / 16, _RDNA3, 128, 64, 960),
    )
}


def card_for(mcpu: str, name: str | None = None) -> Card | None:
    """The card called `name`, or the first one whose GPU is `mcpu`; None where none is known.

    UserError for a name that is not known, or is that of a card with another GPU.
    """
    if name is None:
        return next((card for card in CARDS.values() if card.mcpu == mcpu), None)
    found = CARDS.get(name)
    if found is None:
        raise UserError(f"no figures of the card {name!r}", remedy=f"use {', '.join(CARDS)}")
    if found.mcpu != mcpu:
        fitting = [card.name for card in CARDS.values() if card.mcpu == mcpu]
        raise UserError(
            f"the code is for {mcpu}, the card {name} has {found.mcpu}",
            remedy=f"use {' or '.join(fitting) or 'no card: there are no figures of one'}",
        )
    return found
