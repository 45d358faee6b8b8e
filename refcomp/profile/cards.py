"""Peak rates of GPUs, for turning counts into estimated times.

Units, boost clock and bandwidth come from each card's data sheet or product page. The tests derive
from these figures the peak rates that the documents print. `multiprocessor.py` has the rates of a
multiprocessor of an NVIDIA GPU. Sources of the rates of a compute unit of an AMD GPU:

- vector and matrix instructions: AMD's white papers of CDNA 2, CDNA 3 and RDNA 3, and its "Matrix
  Instruction Calculator" (passes of four clocks). The calculator's rates equal those of the data
  sheets. Instructions with several blocks, older ones of bf16, and the small one of f64 are slower.
- products of integers and transcendental functions: LLVM's model for its scheduler
- f64 on RDNA 3: 1/32 of the f32 peak of the product page, which counts pairs of instructions
- scalar instructions: one a clock for each scheduler. A unit has one scheduler on CDNA, and two on
  RDNA.
- LDS: 32 banks of 4 bytes, as `refcomp.emulator.observers.counting.banks` counts them
- the vector L1 cache: a line a clock, the peak in AMD's "ROCm Compute Profiler" for CDNA. The same
  is assumed for RDNA.

The clock is the boost clock. Under load, real clocks are lower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.profile.multiprocessor import (
    ADA,
    AMPERE,
    GA10X,
    GEFORCE_ADA,
    GEFORCE_GA10X,
    HOPPER,
    TURING,
    VOLTA,
    Multiprocessor,
)

BLOCKS, OLD_BF16 = "in blocks", "bf16 without _1k"
_CDNA2 = {
    "f64": 128,
    "f32": 128,
    "f16": 512,
    "bf16": 512,
    "i8": 512,
    f"f64 {BLOCKS}": 64,
    OLD_BF16: 256,
}
_CDNA3 = {
    "f64": 128,
    "f32": 128,
    "xf32": 512,
    "f16": 1024,
    "bf16": 1024,
    "i8": 2048,
    "fp8": 2048,
    f"f64 {BLOCKS}": 64,
    f"f16 {BLOCKS}": 512,
    f"bf16 {BLOCKS}": 512,
    f"i8 {BLOCKS}": 512,
}
_RDNA3 = {"f16": 256, "bf16": 256, "i8": 256, "i4": 512}


@dataclass(frozen=True, slots=True)
class Unit:
    """A compute unit. Rates are per clock."""

    mcpu: str  # the GPU's name in LLVM
    simds: int
    lanes: int  # of vector instructions
    f64_rate: float  # part of `lanes` that f64 instructions use
    integer_rate: float  # part of `lanes` that products of whole 32-bit integers use
    matrix: Mapping[str, int]  # multiply-adds of matrix instructions, by dtype
    cache_bytes: int  # of the vector L1 cache
    scalars: int  # scalar instructions
    # Transcendental functions use a quarter of the lanes, and run beside other instructions.
    has_quarter_unit: bool = False


_MI200 = Unit("gfx90a", 4, 64, 1, 1, _CDNA2, 64, 1)
_MI300 = Unit("gfx942", 4, 64, 1, 1, _CDNA3, 128, 1)
_NAVI31 = Unit("gfx1100", 2, 64, 1 / 16, 1 / 4, _RDNA3, 128, 2, has_quarter_unit=True)


@dataclass(frozen=True, slots=True)
class Card:
    """A card of equal units. `refcomp.profile.CARDS` has the known cards by name.

    Attributes:
        name: the name of the card, such as MI210.
        source: the vendor's document with the figures.
        unit: the figures of one compute unit, or of one multiprocessor.
        units: the number of compute units or multiprocessors.
        gigahertz: the boost clock, in GHz.
        bandwidth: the bandwidth of the memory, in GB/s.
        tensor_clock: the clock of tensor cores, relative to the boost clock. For f64 it is 1.

    Source: the vendor's data sheet or product page of the card, which `source` names.

    Example::

        >>> card = rc.profile.CARDS["MI210"]
        >>> card.units, card.gigahertz, card.bandwidth, card.source
        (104, 1.7, 1638.4, 'AMD Instinct MI210 data sheet')
        >>> print(card.mcpu, f"{card.peak:.3g}")
        gfx90a 1.13e+13
    """

    name: str
    source: str
    unit: Unit | Multiprocessor
    units: int
    gigahertz: float
    bandwidth: float
    tensor_clock: float = 1.0

    @property
    def mcpu(self) -> str:
        """The GPU's name in LLVM, or the compute capability, such as sm_90."""
        return self.unit.mcpu

    @property
    def peak(self) -> float:
        """Multiply-adds of f32 vector instructions a second, one a lane."""
        return self.units * self.unit.lanes * self.gigahertz * 1e9


def _instinct(
    name: str, unit: Unit, units: int, gigahertz: float, bandwidth: float
) -> Card:
    source = f"AMD Instinct {name} data sheet"
    return Card(name, source, unit, units, gigahertz, bandwidth)


def _radeon(
    name: str, model: str, units: int, gigahertz: float, bandwidth: float
) -> Card:
    source = f"AMD Radeon {model} product page"
    return Card(name, source, _NAVI31, units, gigahertz, bandwidth)


def _nvidia(
    name: str,
    unit: Multiprocessor,
    units: int,
    gigahertz: float,
    bandwidth: float,
    document: str,
    tensor_clock: float = 1.0,
) -> Card:
    source = f"NVIDIA {document}"
    return Card(name, source, unit, units, gigahertz, bandwidth, tensor_clock)


_H100 = "H100 Tensor Core GPU Architecture white paper"
# The peak rates of its tensor cores are stated for 1.83 GHz, except that of f64.
_H100_TENSOR = 1.83 / 1.98
# The MI250 and MI250X have two dies, and a kernel runs on one: the figures are of one die.
# The first card with a GPU is the default for it.
CARDS = {
    card.name: card
    for card in (
        _instinct("MI210", _MI200, 104, 1.7, 1638.4),
        _instinct("MI250", _MI200, 104, 1.7, 3276.8 / 2),
        _instinct("MI250X", _MI200, 110, 1.7, 3276.8 / 2),
        _instinct("MI300X", _MI300, 304, 2.1, 5300),
        _instinct("MI300A", _MI300, 228, 2.1, 5300),
        _instinct("MI325X", _MI300, 304, 2.1, 6000),
        _radeon("RX 7900 XTX", "RX 7900 XTX", 96, 2.5, 960),
        _radeon("RX 7900 XT", "RX 7900 XT", 84, 2.4, 800),
        _radeon("W7900", "PRO W7900", 96, 2.495, 864),
        _nvidia("V100 SXM2", VOLTA, 80, 1.53, 900, "Tesla V100 white paper"),
        _nvidia("T4", TURING, 40, 1.59, 320, "T4 data sheet"),
        _nvidia("A100 SXM", AMPERE, 108, 1.41, 2039, "A100 data sheet"),
        _nvidia("A10", GA10X, 72, 1.695, 600, "A10 data sheet"),
        _nvidia("RTX 3090", GEFORCE_GA10X, 82, 1.695, 936, "GA102 white paper"),
        _nvidia("L4", ADA, 58, 2.04, 300, "L4 data sheet"),
        _nvidia("RTX 4090", GEFORCE_ADA, 128, 2.52, 1008, "Ada white paper"),
        _nvidia("H100 SXM", HOPPER, 132, 1.98, 3350, _H100, _H100_TENSOR),
        _nvidia("H200 SXM", HOPPER, 132, 1.98, 4800, "H200 data sheet", _H100_TENSOR),
    )
}


def card_for(mcpu: str, name: str | None = None) -> Card | None:
    """Return the card called `name`, by default the first card whose GPU is `mcpu`; None: no card.

    Case and spaces of the name do not matter. Raises UserError for an unknown card, and for a card
    with another GPU.
    """
    fitting = [card for card in CARDS.values() if card.mcpu == mcpu]
    if name is None:
        return fitting[0] if fitting else None
    card = find_card(name)
    if card.mcpu != mcpu:
        names = " or ".join(card.name for card in fitting)
        names = names or "no card (no figures are known for this GPU)"
        raise UserError(
            f"the code is for {mcpu}, the card {card.name} has {card.mcpu}",
            remedy=f"use {names}; or compile for {card.mcpu}",
        )
    return card


def find_card(name: str) -> Card:
    """Return the card called `name`. Case and spaces do not matter.

    The form factor may be left out if the card has only one: H100 is the H100 SXM. Raises UserError
    for an unknown card.
    """
    by_name = {_normalized(card.name): card for card in CARDS.values()}
    card = by_name.get(_normalized(name))
    models = [one for one in CARDS if one.casefold().startswith(f"{name} ".casefold())]
    if card is None and len(models) == 1:
        card = CARDS[models[0]]
    if card is None:
        remedy = advise(name, CARDS, f"use {', '.join(CARDS)}")
        raise UserError(f"no figures of the card {name!r}", remedy=remedy)
    return card


def _normalized(name: str) -> str:
    return name.replace(" ", "").casefold()
