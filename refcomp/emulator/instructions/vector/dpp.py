"""DPP, a modifier of many vector instructions: the first source comes from another lane.

Lanes without a lane to read keep their result, or read 0 under `bound_ctrl`. Inactive lanes are
read only under `fi`.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.lanes import in_lanes
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import File, Rows
from refcomp.emulator.machine.sources import OperandSource
from refcomp.emulator.machine.waves import Run, Waves

_QUAD = re.compile(r"\[(\d),(\d),(\d),(\d)\]")
_EIGHT = re.compile(r"\[(\d(?:,\d){7})\]")


def is_dpp(instruction: Instruction) -> bool:
    """Return whether the first source comes from another lane."""
    return "row_mask" in instruction.modifiers or "dpp8" in instruction.modifiers


def _origin(instruction: Instruction) -> npt.NDArray[np.intp]:
    """Return, for each lane, the lane that it reads; -1 for none."""
    modifiers = instruction.modifiers
    lane = np.arange(instruction.lanes)
    place = lane & 15
    pattern: npt.NDArray[np.intp]
    row = lane & ~15
    if match := _QUAD.match(modifiers.get("quad_perm", "")):
        pattern = np.array([int(n) for n in match.groups()])
        return (lane & ~3) + pattern.take(lane & 3)
    if match := _EIGHT.match(modifiers.get("dpp8", "")):
        pattern = np.array([int(n) for n in match[1].split(",")])
        return (lane & ~7) + pattern.take(lane & 7)
    if "row_xmask" in modifiers:
        return row + (place ^ int(modifiers["row_xmask"]))
    if "row_shl" in modifiers:
        moved = place + int(modifiers["row_shl"])
        return np.where(moved < 16, row + moved, -1)
    if "row_shr" in modifiers:
        moved = place - int(modifiers["row_shr"])
        return np.where(moved >= 0, row + moved, -1)
    if "row_ror" in modifiers:
        return row + (place - int(modifiers["row_ror"])) % 16
    for name in ("row_newbcast", "row_share"):
        if name in modifiers:
            return row + int(modifiers[name])
    if "row_mirror" in modifiers:
        return row + 15 - place
    if "row_half_mirror" in modifiers:
        return (lane & ~7) + 7 - (lane & 7)
    return _origin_in_wave(instruction)


def _origin_in_wave(instruction: Instruction) -> npt.NDArray[np.intp]:
    modifiers = instruction.modifiers
    lane = np.arange(instruction.lanes)
    if "row_bcast" in modifiers:
        width = int(modifiers["row_bcast"]) + 1  # 16 or 32
        return (lane // width) * width - 1  # the last lane of the rows before
    for name, step in {"wave_shl": 1, "wave_shr": -1}.items():
        if name in modifiers:
            moved = lane + step
            return np.where((moved >= 0) & (moved < len(lane)), moved, -1)
    for name, step in {"wave_rol": 1, "wave_ror": -1}.items():
        if name in modifiers:
            return (lane + step) % len(lane)
    raise not_emulated("this kind of DPP", instruction)


def moved_source(source: OperandSource, instruction: Instruction) -> OperandSource:
    """Return the first source as lanes read it that have a lane to read."""
    place = np.maximum(_origin(instruction), 0)
    return replace(
        source, read=lambda file, rows: np.asarray(source.read(file, rows))[:, place]
    )


def zero_source(source: OperandSource, instruction: Instruction) -> OperandSource:
    """Return the first source as lanes read it that have no active lane to read: 0."""

    def read(file: File, rows: Rows) -> Array:
        return np.zeros_like(np.asarray(source.read(file, rows)))

    return replace(source, read=read, numbers=frozenset())


def with_dpp(
    run: Run,
    on_zero: Run,
    instruction: Instruction,
    masks: tuple[int, ...],  # scalar registers that get a bit from each lane
) -> Run:
    """Return what runs `run` in lanes with an active lane to read, `on_zero` in the others.

    The others run only under `bound_ctrl`.
    """
    origin = _origin(instruction)
    modifiers = instruction.modifiers
    rows = int(modifiers.get("row_mask", "0xf"), 0)
    banks = int(modifiers.get("bank_mask", "0xf"), 0)
    lane = np.arange(instruction.lanes)
    allowed = (rows >> (lane // 16) & 1 == 1) & (banks >> (lane // 4 % 4) & 1 == 1)
    reads_zero = "bound_ctrl" in modifiers
    reads_inactive = modifiers.get("fi") == "1"
    place = np.maximum(origin, 0)

    def restricted(waves: Waves) -> None:
        full = waves.mask
        can_read = (origin >= 0) & (full[:, place] | reads_inactive)
        others = full & allowed & ~can_read
        in_lanes(waves, full & allowed & can_read, run)
        if reads_zero and others.any():
            first = [
                waves.values.scalar(n, waves.mask_bits, waves.rows).copy()
                for n in masks
            ]
            in_lanes(waves, others, on_zero)
            # The second run cleared the bits of the first.
            for number, bits in zip(masks, first, strict=True):
                both = bits | waves.values.scalar(number, waves.mask_bits, waves.rows)
                waves.write_scalar(number, waves.mask_bits, both)

    return restricted
