"""The report on one kernel: its counts, their cost on a card, and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from refcomp.driver.amd_resources import AmdResources, resources_of
from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError
from refcomp.profile.advice import Advice, advise
from refcomp.profile.bound import Bound, bound_of
from refcomp.profile.cards import card_for
from refcomp.profile.facts import RuleInputs
from refcomp.profile.listing import Listing, list_kernel, loop_line
from refcomp.profile.occupancy import ptxas_resources, waves_of_launch
from refcomp.runtime.module import Module
from refcomp.runtime.programs.device_module import DeviceModule
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.step import Step
from refcomp.toolchain import read_code_object

_SOURCES = ("kernels", "llvm", "cuda", "lines")


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """The report on one kernel, which `report_of` returns.

    Counts are exact. The estimate follows from public figures of a card.

    Attributes:
        counts: the counts of launches, instructions, accesses and bytes.
        listing: the lines of schedule, loop IR, LLVM IR and machine code that belong together.
        resources: registers, memory and waves; None if the machine code is not known.
        bound: the estimate of the time on a card, in seconds; None if no card is known.
        advice: the changes of the schedule that help, the most useful first.
        lack: the reason why the resources of a kernel in PTX are not known; '' if they are.

    Example::

        >>> profile = rc.Profile()
        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> module = rc.build(s, [A, B], target="rocm -mcpu=gfx942", name="increment")
        >>> gpu = rc.rocm_emulator("gfx942", profile=profile)
        >>> module(rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu))
        >>> report = rc.profile.report_of(profile.kernels[0], module, s)
        >>> report.counts.name, report.bound.card.name, report.efficiency, report.useful_part
        ('increment_kernel0', 'MI300X', 1.0, 0.0)
        >>> sum(report.by_line().values()) == sum(count for _, count in report.classes())
        True
        >>> report.to_json()["groups"]
        1
    """

    counts: KernelCounts
    listing: Listing
    resources: AmdResources | NvidiaResources | None
    bound: Bound | None
    advice: tuple[Advice, ...]
    lack: str = ""

    @property
    def efficiency(self) -> float:
        """Bytes that lanes requested from global memory, for each byte of the moved segments.

        Bytes that several lanes of an access request count once. It is 1 if nothing moved.
        """
        accesses = [one.access for one in self.counts.accesses("global") if one.access]
        moved = sum(access.transactions for access in accesses) * self.counts.segment
        return sum(access.bytes for access in accesses) / moved if moved else 1.0

    @property
    def useful_part(self) -> float:
        """Share of multiply-adds among the inner loop's vector instructions, without memory."""
        inner = self.counts.inner_loop()
        isa = self.counts.isa
        useful = inner.get(isa.multiply, 0) + inner.get(isa.matrix, 0)
        others = sum(inner.get(kind, 0) for kind in isa.arithmetic)
        return useful / (useful + others) if useful else 0.0

    def to_json(self) -> dict[str, object]:
        """Return the numbers and texts as a JSON value."""
        counts = self.counts
        bound = self.bound
        estimate: dict[str, object] | None = None
        if bound is not None:
            estimate = {
                "card": bound.card.name,
                "seconds": bound.seconds,
                "limit": bound.limit,
                "working_units": bound.units,
                "multiplying": bound.useful,
                "part_of_peak": bound.peak,
            }
        accesses = []
        for one in counts.instructions:
            instruction = {
                "instruction": one.instruction.text,
                "source": one.instruction.source,
            }
            own = [one.access] if one.access else []
            for access in (*own, *one.elsewhere.values()):
                accesses.append(instruction | asdict(access))
        lines = [
            {"line": line, "text": self.listing.loop_ir(line), "instructions": ran}
            for line, ran in self.by_line().items()
        ]
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
            "matrix_part": counts.matrix_part,
            "atomic_updates": counts.atomic_updates,
            "active_lanes": counts.active_lanes,
            "segment_bytes": counts.segment,
            "coalescing_efficiency": self.efficiency,
            "bytes_read": counts.read,
            "bytes_written": counts.written,
            "accesses": accesses,
            "lines": lines,
            "sources": counts.by_source(),
            "resources": asdict(self.resources) if self.resources else None,
            "estimate": estimate,
            "advice": [asdict(advice) for advice in self.advice],
        }

    def by_line(self) -> dict[int, int]:
        """Return the number of instructions of waves by line of the loop IR, the highest first.

        Line 0 has the instructions whose line is not known.
        """
        found: Counter[int] = Counter()
        for one in self.counts.instructions:
            found[loop_line(one)] += one.waves
        return dict(found.most_common())

    def classes(self) -> list[tuple[str, int]]:
        """Return the instructions of waves by class, in the order of the GPU's classes."""
        by_class = self.counts.by_class()
        classes = self.counts.isa.classes
        return [(kind, by_class[kind]) for kind in classes if kind in by_class]


def report_of(
    counts: KernelCounts,
    code: Module | DeviceModule | Binary | None = None,
    schedule: Schedule | None = None,
    card: str | None = None,
) -> ProfileReport:
    """Return the report on one kernel.

    Args:
        counts: one of a Profile's kernels.
        code: the module with the kernel. Without it, texts and resources are not known.
        schedule: the schedule from which `code` was built.
        card: the name of one of CARDS; by default the first card with the kernel's GPU.

    Raises:
        UserError: the card is unknown or has another GPU, or `counts` are not of one kernel.

    Example::

        >>> profile = rc.Profile()
        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> module = rc.build(s, [A, B], target="rocm -mcpu=gfx942", name="increment")
        >>> gpu = rc.rocm_emulator("gfx942", profile=profile)
        >>> module(rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu))
        >>> report = rc.profile.report_of(profile.kernels[0], module, s)
        >>> report.bound.card.name, len(report.advice) > 0
        ('MI300X', True)
    """
    if not isinstance(counts, KernelCounts):
        why = None
        if isinstance(counts, Profile):
            why = f"it holds the counts of {counted(len(counts.kernels), 'kernel')}"
        raise UserError(
            f"a {type(counts).__name__} is not what one kernel did",
            why=why,
            remedy="give one of a Profile's kernels: profile.kernels[0]",
        )
    module: DeviceModule | None = None
    if isinstance(code, Module):
        module = next(iter(code.imported_modules), None)
    elif isinstance(code, DeviceModule):
        module = code
    steps: Sequence[Step] = schedule.steps if schedule else ()
    listing = list_kernel(counts, _sources(module), steps)
    found = card_for(counts.mcpu, card)
    bound = bound_of(counts, found) if found else None
    resources, lack = _resources(counts, module.code if module else code)
    advice = advise(RuleInputs(counts, listing, resources, bound))
    return ProfileReport(counts, listing, resources, bound, advice, lack)


def _sources(module: DeviceModule | None) -> Mapping[str, str]:
    """Return the texts of `module` that exist, by name."""
    found = {}
    if module is not None:
        for name in _SOURCES:
            with suppress(UserError):
                found[name] = module.get_source(name)
    return found


def _resources(
    counts: KernelCounts, code: object
) -> tuple[AmdResources | NvidiaResources | None, str]:
    """Return the resources of the kernel, with the occupancy of its last launch.

    The text is `ProfileReport.lack`.
    """
    if not isinstance(code, Binary):
        return None, "not known without the PTX"
    if code.format == "ptx":
        return ptxas_resources(code.data, counts)
    resources = {one.kernel: one for one in resources_of(code)}
    kernels = {one.name: one for one in read_code_object(code.data).kernels}
    if counts.name not in resources or counts.name not in kernels:
        return None, ""
    found = resources[counts.name]
    held = waves_of_launch(kernels[counts.name], counts)
    return replace(found, waves=held.waves, limit=held.limit) if held else found, ""
