"""A kernel's counts, what they mean on a card, and what to change: all that a profile tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from refcomp.driver.kernel_resources import KernelResources, resources_of
from refcomp.emulator.observers.counting import CLASSES, InstructionCounts, KernelCounts
from refcomp.emulator.observers.counting.mnemonics import FMA, MFMA, VALU
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.profile.advice import Advice, advise
from refcomp.profile.bound import Bound, bound_of
from refcomp.profile.cards import card_for
from refcomp.profile.facts import RuleInputs
from refcomp.profile.listing import Listing, list_kernel, loop_line
from refcomp.profile.occupancy import waves_of_launch
from refcomp.runtime.module import Module
from refcomp.runtime.programs.device_module import DeviceModule
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.step import Step
from refcomp.toolchain import read_code_object

_SOURCES = ("kernels", "llvm", "lines")


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """All of one kernel; `resources` and `bound` are None where they are not known."""

    counts: KernelCounts
    listing: Listing
    resources: KernelResources | None
    bound: Bound | None
    advice: tuple[Advice, ...]

    @property
    def efficiency(self) -> float:
        """Bytes that lanes asked of global memory for each byte of the segments that were moved:
        above 1 where lanes share bytes; 1 where nothing was moved."""
        accesses = [one.access for one in self.counts.accesses("global") if one.access]
        moved = sum(access.transactions for access in accesses) * self.counts.segment
        return sum(access.bytes for access in accesses) / moved if moved else 1.0

    @property
    def useful_part(self) -> float:
        """Of the inner loop's vector instructions, memory aside, those that multiply and add."""
        inner = self.counts.inner_loop()
        useful = inner.get(FMA, 0) + inner.get(MFMA, 0)
        return useful / (useful + inner.get(VALU, 0)) if useful else 0.0

    def to_json(self) -> dict[str, Any]:
        """Numbers and texts for scripts."""
        counts, bound = self.counts, self.bound
        return {
            "kernel": counts.name,
            "gpu": counts.mcpu,
            "launches": counts.launches,
            "groups": counts.groups,
            "waves": counts.waves,
            "grid": list(counts.grid),
            "block": list(counts.block),
            "instructions": counts.by_class(),
            "inner_loop": counts.inner_loop(),
            "inner_loop_useful_part": self.useful_part,
            "multiply_adds": counts.fmas,
            "active_lanes": counts.active_lanes,
            "segment_bytes": counts.segment,
            "coalescing_efficiency": self.efficiency,
            "bytes_read": counts.read,
            "bytes_written": counts.written,
            "accesses": [
                told for one in counts.instructions for told in _accesses_to_json(one)
            ],
            "lines": [
                {
                    "line": number,
                    "text": self.listing.loop_ir(number),
                    "instructions": ran,
                }
                for number, ran in self.by_line().items()
            ],
            "sources": counts.by_source(),
            "resources": asdict(self.resources) if self.resources else None,
            "estimate": _bound_to_json(bound) if bound else None,
            "advice": [asdict(advice) for advice in self.advice],
        }

    def by_line(self) -> dict[int, int]:
        """Instructions of waves by line of the loop IR, the most first; 0: line not known."""
        found: dict[int, int] = {}
        for one in self.counts.instructions:
            line = loop_line(one)
            found[line] = found.get(line, 0) + one.waves
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def classes(self) -> list[tuple[str, int]]:
        """Instructions of waves by class, in the order of CLASSES."""
        by_class = self.counts.by_class()
        return [(kind, by_class[kind]) for kind in CLASSES if kind in by_class]


def _accesses_to_json(one: InstructionCounts) -> list[dict[str, Any]]:
    told = {"instruction": one.instruction.text, "source": one.instruction.source}
    accesses = [one.access] if one.access else []
    return [told | asdict(access) for access in (*accesses, *one.elsewhere.values())]


def _bound_to_json(bound: Bound) -> dict[str, Any]:
    return {
        "card": bound.card.name,
        "seconds": bound.seconds,
        "limit": bound.limit,
        "working_units": bound.units,
        "multiplying": bound.useful,
        "part_of_peak": bound.peak,
    }


def report_of(
    counts: KernelCounts,
    code: Module | DeviceModule | Binary | None = None,
    schedule: Schedule | None = None,
    card: str | None = None,
) -> ProfileReport:
    """What is to be told of a kernel.

    `code` is what it was built to, `schedule` what that was built of: without them the texts are
    not told. `card` names one of CARDS; by default one with the kernel's GPU. UserError.
    """
    if not isinstance(counts, KernelCounts):
        what = f"a {type(counts).__name__} is not what one kernel did"
        raise UserError(
            what, remedy="give one of a Profile's kernels: profile.kernels[0]"
        )
    steps: Sequence[Step] = schedule.steps if schedule else ()
    listing = list_kernel(counts, _sources(code), steps)
    found = card_for(counts.mcpu, card)
    bound = bound_of(counts, found) if found else None
    resources = _resources(counts, code)
    advice = advise(RuleInputs(counts, listing, resources, bound))
    return ProfileReport(counts, listing, resources, bound, advice)


def _device_module(code: object) -> DeviceModule | None:
    if isinstance(code, Module):
        return next(iter(code.imported_modules), None)
    return code if isinstance(code, DeviceModule) else None


def _sources(code: object) -> Mapping[str, str]:
    module = _device_module(code)
    found = {}
    for name in _SOURCES if module else ():
        with suppress(UserError):  # that there is no such text
            found[name] = module.get_source(name) if module else ""
    return found


def _resources(counts: KernelCounts, code: object) -> KernelResources | None:
    """What the kernel takes; its waves are those that fit when it is launched as it last was."""
    module = _device_module(code)
    binary = module.code if module else code
    if not isinstance(binary, Binary):
        return None
    found = next(
        (one for one in resources_of(binary) if one.kernel == counts.name), None
    )
    told = next(
        (k for k in read_code_object(binary.data).kernels if k.name == counts.name),
        None,
    )
    if found is None or told is None:
        return None
    held = waves_of_launch(told, counts)
    return replace(found, waves=held.waves, limit=held.limit) if held else found
