"""The texts of a kernel line by line, and which lines of them belong together.

A line of the loop IR is the hub: instructions tell it by their debug locations, lines of the LLVM
IR by the links that the compiler wrote, and each has an origin, the primitive that made it.
Needs what `DeviceModule.get_source` gives as `kernels`, `llvm` and `lines`; what is lacking leaves
its text empty. Where a line's own origin names no primitive, that of the loop around it counts.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts
from refcomp.schedule.step import Step

SCHEDULE, LOOP_IR, LLVM_IR, ISA = "schedule", "loop IR", "LLVM IR", "ISA"


@dataclass(frozen=True, slots=True)
class Line:
    """`links` are lines of the loop IR; `waves` how many instructions of waves it stands for, None
    where that is not known; `note` says more of it."""

    text: str
    links: tuple[int, ...] = ()
    waves: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """Where a line of the loop IR comes from; see `refcomp.ir.stmt.Origin`."""

    stage: str = ""
    axis: str = ""
    primitive: str = ""
    line: str = ""

    def __str__(self) -> str:
        by = f".{self.primitive}({self.axis})" if self.primitive else ""
        return f"s[{self.stage}]{by}" if self.stage else ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The lines of each text by its name; those of the loop IR begin with number `first`. `origins`
    are of lines of the loop IR."""

    texts: Mapping[str, tuple[Line, ...]]
    origins: Mapping[int, LineOrigin]
    first: int = 1

    def loop_ir(self, number: int) -> str:
        """A line of the loop IR, without its indentation; empty where there is none."""
        lines = self.texts[LOOP_IR]
        place = number - self.first
        return lines[place].text.strip() if 0 <= place < len(lines) else ""

    def around(self, number: int) -> list[int]:
        """The loops and other statements around a line of the loop IR, from the innermost."""
        lines = [line.text for line in self.texts[LOOP_IR]]
        return [place + self.first for place in _around(lines, number - self.first)]


def list_kernel(
    counts: KernelCounts, sources: Mapping[str, str], steps: Sequence[Step] = ()
) -> Listing:
    """The texts of a kernel and what ran of them. `steps` are those of its schedule."""
    linked = json.loads(sources.get("lines", "{}"))
    whole = sources.get("kernels", "").splitlines()
    begin, end = _lines_of(counts.name, linked.get("kernels", {}), len(whole))
    loops = whole[begin - 1 : end]
    origins = {
        int(number): LineOrigin(*told)
        for number, told in linked.get("origins", {}).items()
        if begin <= int(number) <= end
    }
    ran = _ran_by_line(counts)
    by_step = _schedule(loops, begin, origins, steps)
    whole_llvm = sources.get("llvm", "").splitlines()
    # Metadata at the end of the text has no line.
    came_from = [*linked.get("llvm", ()), *[0] * len(whole_llvm)]
    texts = {
        SCHEDULE: tuple(by_step),
        LOOP_IR: tuple(
            Line(text, (number,), ran.get(number), str(origins.get(number, "")))
            for number, text in enumerate(loops, begin)
        ),
        LLVM_IR: tuple(
            Line(whole_llvm[number], (line,) if (line := came_from[number]) else ())
            for number in _without_other_kernels(counts.name, whole_llvm)
        ),
        ISA: tuple(map(_instruction, counts.listing())),
    }
    return Listing(texts, origins, begin)


def _lines_of(name: str, begins: Mapping[str, int], count: int) -> tuple[int, int]:
    """The first and the last line of a kernel among those of all kernels of a module."""
    begin = begins.get(name, 1)
    later = [other for other in begins.values() if other > begin]
    return begin, min(later, default=count + 2) - 2  # an empty line between two


def _without_other_kernels(name: str, lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines of LLVM IR that are not of another kernel, nor the gap behind it;
    all where it has no such kernel."""
    kernels = {line for line in lines if line.startswith("define amdgpu_kernel ")}
    own = {line for line in kernels if f"@{name}(" in line}
    others = kernels - own if own else set()
    is_other = is_over = False
    for number, line in enumerate(lines):
        if line.startswith("define "):
            is_other, is_over = line in others, False
        elif is_over and line:
            is_other = False
        if not is_other:
            yield number
        is_over |= line == "}"


def loop_line(one: InstructionCounts) -> int:
    """The line of the loop IR that an instruction came from; 0 where that is not known."""
    number = one.instruction.source.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _ran_by_line(counts: KernelCounts) -> dict[int, int]:
    found: defaultdict[int, int] = defaultdict(int)
    for one in counts.instructions:
        found[loop_line(one)] += one.waves
    return dict(found)


def _instruction(one: InstructionCounts) -> Line:
    line = loop_line(one)
    return Line(one.instruction.text, (line,) if line else (), one.waves, _note(one))


def _note(one: InstructionCounts) -> str:
    access = one.access
    if access is None:
        return ""
    if access.space == "global" and access.transactions:
        return f"{access.transactions} transactions, {access.least} needed"
    if access.space == "shared":
        return f"{access.clocks} clocks, {access.conflicts} for bank conflicts"
    return f"{access.bytes} bytes"


# Which primitive made a line.


def _around(lines: Sequence[str], place: int) -> list[int]:
    """The places of the lines that open what a line stands in, from the innermost."""
    found, depth = [], _indentation(lines[place]) if 0 <= place < len(lines) else 0
    for before in range(min(place, len(lines)) - 1, -1, -1):
        if lines[before].rstrip().endswith("{") and _indentation(lines[before]) < depth:
            found.append(before)
            depth = _indentation(lines[before])
    return found


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _schedule(
    loops: Sequence[str],
    begin: int,
    origins: Mapping[int, LineOrigin],
    steps: Sequence[Step],
) -> list[Line]:
    made: defaultdict[LineOrigin, list[int]] = defaultdict(list)
    for place in range(len(loops)):
        origin = _origin_with_primitive(loops, place, begin, origins)
        if origin is not None:
            made[origin].append(begin + place)
    if not steps:
        return [
            Line(_told(origin, origin.line), tuple(n)) for origin, n in made.items()
        ]
    linked: defaultdict[int, list[int]] = defaultdict(list)
    for origin, numbers in made.items():
        for step in _steps_of(origin, steps):
            linked[step] += numbers
    return [
        Line(_told(step, step.line), tuple(sorted(linked[number])))
        for number, step in enumerate(steps)
    ]


def _told(primitive: Step | LineOrigin, line: str) -> str:
    """A primitive and where it was called, without the folders: nobody else's have those names."""
    return f"{primitive}  # {os.path.basename(line)}"


def _origin_with_primitive(
    loops: Sequence[str], place: int, begin: int, origins: Mapping[int, LineOrigin]
) -> LineOrigin | None:
    for number in (place, *_around(loops, place)):
        origin = origins.get(begin + number)
        if origin is not None and origin.primitive:
            return origin
    return None


def _steps_of(origin: LineOrigin, steps: Sequence[Step]) -> list[int]:
    """The numbers of the steps that an origin tells of, of its own stage if there are such."""
    fitting = [
        number
        for number, step in enumerate(steps)
        if (step.primitive, step.line) == (origin.primitive, origin.line)
    ]
    same = [number for number in fitting if steps[number].stage == origin.stage]
    # A stage that a cache made is called by the one that it was made of.
    made = [n for n in fitting if origin.stage.startswith(f"{steps[n].stage}.")]
    return [n for n in same if _names_axis(steps[n], origin)] or same or made or fitting


def _names_axis(step: Step, origin: LineOrigin) -> bool:
    return any(str(arg) == origin.axis for arg in step.args)
