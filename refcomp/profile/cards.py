"""Public figures of AMD GPUs, by which an estimate turns counts into time.

Of each card its data sheet or product page tells units, highest clock and bandwidth, of which the
tests derive the peak rates that stand there, too. What a unit does in a clock:
- vector and matrix instructions: AMD's white papers of CDNA 2, CDNA 3 and RDNA 3 and its "Matrix
  Instruction Calculator" (passes of four clocks), whose rates are those of the data sheets but for
  instructions with several blocks, older ones of bf16, and the small one of f64, which do less;
- products of integers and transcendental functions: LLVM's model for its scheduler;
- f64 on RDNA 3: a 32nd of the f32 peak of the product page, which counts pairs of instructions;
- scalar instructions: one a clock of a scheduler, of which CDNA's units have one, RDNA's two;
- LDS: 32 banks of 4 bytes, as `refcomp.emulator.observers.counting.banks` counts them;
- the vector L1 cache: a line a clock, the peak in AMD's "ROCm Compute Profiler" for CDNA; of RDNA
  the same is assumed.
The clock is the highest one: real ones are lower under load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.foundation.errors import UserError

BLOCKS, OLD_BF16 = "in blocks", "bf16 without _1k"
_CDNA2 = {
    **{"f64": 128, "f32": 128, "f16": 512, "bf16": 512, "i8": 512},
    **{f"f64 {BLOCKS}": 64, OLD_BF16: 256},
}
_CDNA3 = {
    **{
        "f64": 128,
        "f32": 128,
        "xf32": 512,
        "f16": 1024,
        "bf16": 1024,
        "i8": 2048,
        "fp8": 2048,
    },
    **{
        f"f64 {BLOCKS}": 64,
        f"f16 {BLOCKS}": 512,
        f"bf16 {BLOCKS}": 512,
        f"i8 {BLOCKS}": 512,
    },
}
_RDNA3 = {"f16": 256, "bf16": 256, "i8": 256, "i4": 512}


@dataclass(frozen=True, slots=True)
class Unit:
    """A compute unit of the GPUs `mcpu`. It has `simds`, and does in a clock: `lanes` of vector
    instructions, of which f64 ones at `f64_rate` and products of whole 32-bit integers at
    `integer_rate`; multiply-adds of matrix instructions by dtype; bytes of the vector L1 cache;
    `scalars` scalar instructions. `has_quarter_unit` where transcendental functions, of which a
    lane does one in four clocks, go beside other vector instructions."""

    mcpu: str
    simds: int
    lanes: int
    f64_rate: float
    integer_rate: float
    matrix: Mapping[str, int]
    cache_bytes: int
    scalars: int
    has_quarter_unit: bool = False


_MI200 = Unit("gfx90a", 4, 64, 1, 1, _CDNA2, 64, 1)
_MI300 = Unit("gfx942", 4, 64, 1, 1, _CDNA3, 128, 1)
_NAVI31 = Unit("gfx1100", 2, 64, 1 / 16, 1 / 4, _RDNA3, 128, 2, has_quarter_unit=True)


@dataclass(frozen=True, slots=True)
class Card:
    """`units` compute units alike at `gigahertz`; `bandwidth` of the memory in GB/s, which AMD's
    `source` tells."""

    name: str
    source: str
    unit: Unit
    units: int
    gigahertz: float
    bandwidth: float

    @property
    def mcpu(self) -> str:
        """The GPU's name in LLVM."""
        return self.unit.mcpu

    @property
    def peak(self) -> float:
        """Multiply-adds of f32 vector instructions a second, one a lane."""
        return self.units * self.unit.lanes * self.gigahertz * 1e9


def _instinct(name: str) -> str:
    return f"AMD Instinct {name} data sheet"


# Of the MI250 and MI250X one of the two dies: a kernel runs on one. The first card is the usual.
CARDS = {
    card.name: card
    for card in (
        Card("MI210", _instinct("MI210"), _MI200, 104, 1.7, 1638.4),
        Card("MI250", _instinct("MI250"), _MI200, 104, 1.7, 3276.8 / 2),
        Card("MI250X", _instinct("MI250X"), _MI200, 110, 1.7, 3276.8 / 2),
        Card("MI300X", _instinct("MI300X"), _MI300, 304, 2.1, 5300),
        Card("MI300A", _instinct("MI300A"), _MI300, 228, 2.1, 5300),
        Card("MI325X", _instinct("MI325X"), _MI300, 304, 2.1, 6000),
        Card(
            "RX 7900 XTX", "AMD Radeon RX 7900 XTX product page", _NAVI31, 96, 2.5, 960
        ),
        Card("RX 7900 XT", "AMD Radeon RX 7900 XT product page", _NAVI31, 84, 2.4, 800),
        Card("W7900", "AMD Radeon PRO W7900 product page", _NAVI31, 96, 2.495, 864),
    )
}


def card_for(mcpu: str, name: str | None = None) -> Card | None:
    """The card called `name`, however its letters and gaps are written, or the first one whose GPU
    is `mcpu`; None where none is known.

    UserError for a name that is not known, or is that of a card with another GPU.
    """
    if name is None:
        return next((card for card in CARDS.values() if card.mcpu == mcpu), None)
    found = next(
        (card for card in CARDS.values() if _plain(card.name) == _plain(name)), None
    )
    if found is None:
        raise UserError(
            f"no figures of the card {name!r}", remedy=f"use {', '.join(CARDS)}"
        )
    if found.mcpu != mcpu:
        fitting = [card.name for card in CARDS.values() if card.mcpu == mcpu]
        raise UserError(
            f"the code is for {mcpu}, the card {found.name} has {found.mcpu}",
            remedy=f"use {' or '.join(fitting) or 'no card: there are no figures of one'}",
        )
    return found


def _plain(name: str) -> str:
    return name.replace(" ", "").casefold()
