"""The texts of a kernel line by line, and the links between their lines.

All links lead to lines of the loop IR. Machine instructions name their line by debug locations.
The compiler records the line of each line of the LLVM IR. A line of the loop IR has an origin: the
primitive that made it. If the origin names no primitive, the origin of the enclosing loop is taken.

Requires the sources `kernels`, `llvm` and `lines` of `DeviceModule.get_source`. The text of a
missing source is empty.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts
from refcomp.foundation.counted import counted
from refcomp.schedule.step import Step

SCHEDULE, LOOP_IR, LLVM_IR, CUDA = "schedule", "loop IR", "LLVM IR", "CUDA C++"


_KERNEL_BEGINS = (
    "define amdgpu_kernel ",
    "define ptx_kernel ",
    'extern "C" __global__ ',
)
_BEGINS = ("define ", 'extern "C" __global__ ')


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one text."""

    text: str
    links: tuple[int, ...] = ()  # the lines of the loop IR that belong to it
    waves: int | None = (
        None  # the number of instructions of waves that ran; None: not known
    )
    note: str = (
        ""  # the memory costs of an instruction; the origin of a line of the loop IR
    )


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """The origin of a line of the loop IR, as text; see `refcomp.ir.stmt.Origin`."""

    stage: str = ""
    axis: str = ""
    primitive: str = ""
    line: str = ""  # of the user's program

    def __str__(self) -> str:
        by = f".{self.primitive}({self.axis})" if self.primitive else ""
        return f"s[{self.stage}]{by}" if self.stage else ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The texts of a kernel."""

    # By SCHEDULE, LOOP_IR, LLVM_IR or CUDA, and the word for the text of instructions: ISA or PTX.
    texts: Mapping[str, tuple[Line, ...]]
    origins: Mapping[int, LineOrigin]  # by line of the loop IR
    first: int = 1  # the number of the loop IR's first line

    def loop_ir(self, number: int) -> str:
        """Return a line of the loop IR without its indentation; '' if there is none."""
        lines = self.texts[LOOP_IR]
        place = number - self.first
        return lines[place].text.strip() if 0 <= place < len(lines) else ""

    def around(self, number: int) -> list[int]:
        """Return the lines of the loops and other statements around a line, innermost first."""
        lines = [line.text for line in self.texts[LOOP_IR]]
        return [place + self.first for place in _around(lines, number - self.first)]


def list_kernel(
    counts: KernelCounts, sources: Mapping[str, str], steps: Sequence[Step] = ()
) -> Listing:
    """Return the texts of a kernel, with counts of what ran.

    Args:
        counts: the counts of the kernel.
        sources: name -> a text of its module.
        steps: the steps of its schedule.
    """
    links = json.loads(sources.get("lines", "{}"))
    all_kernels = sources.get("kernels", "").splitlines()
    begins = links.get("kernels", {})
    begin = begins.get(counts.name, 1)
    later = [other for other in begins.values() if other > begin]
    end = min(later, default=len(all_kernels) + 2) - 2  # an empty line between two
    loops = all_kernels[begin - 1 : end]
    origins = {
        int(number): LineOrigin(*origin)
        for number, origin in links.get("origins", {}).items()
        if begin <= int(number) <= end
    }
    ran: defaultdict[int, int] = defaultdict(int)
    for one in counts.instructions:
        ran[loop_line(one)] += one.waves
    loop_lines = [
        Line(text, (number,), ran.get(number), str(origins.get(number, "")))
        for number, text in enumerate(loops, begin)
    ]
    language = CUDA if "cuda" in sources else LLVM_IR
    printed = sources.get("cuda", sources.get("llvm", "")).splitlines()
    # Metadata at the end of the text has no line.
    text_links = [*links.get("text", ()), *[0] * len(printed)]
    printed_lines = []
    for number in _without_other_kernels(counts.name, printed):
        link = text_links[number]
        printed_lines.append(Line(printed[number], (link,) if link else ()))
    instructions = []
    for one in counts.listing():
        number = loop_line(one)
        own = (number,) if number else ()
        note = _note(one, counts.isa.words.transaction)
        instructions.append(Line(one.instruction.text, own, one.waves, note))
    texts = {
        SCHEDULE: tuple(_schedule(loops, begin, origins, steps)),
        LOOP_IR: tuple(loop_lines),
        language: tuple(printed_lines),
        counts.isa.words.code: tuple(instructions),
    }
    return Listing(texts, origins, begin)


def _without_other_kernels(name: str, lines: Sequence[str]) -> Iterator[int]:
    """Yield the positions of the lines of LLVM IR or C++ that belong to no other kernel.

    The empty lines after another kernel belong to that kernel. Yield all positions if the text does
    not have the kernel.
    """
    kernels = [k for k, line in enumerate(lines) if line.startswith(_KERNEL_BEGINS)]
    # In C++, the name may be in the line after the launch bounds.
    named = re.compile(rf"[@\s]{re.escape(name)}\(")
    own = [k for k in kernels if named.search("\n".join(lines[k : k + 2]))]
    others = {*kernels} - {*own} if own else set()
    is_other = is_over = False
    for number, line in enumerate(lines):
        if line.startswith(_BEGINS):
            is_other = number in others
            is_over = False
        elif is_over and line:
            is_other = False
        if not is_other:
            yield number
        is_over |= line == "}"


def loop_line(one: InstructionCounts) -> int:
    """Return the line of the loop IR of an instruction; 0 if it is not known."""
    number = one.instruction.source.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _note(one: InstructionCounts, transaction: str) -> str:
    access = one.access
    if access is None:
        return ""
    if access.space == "global" and access.transactions:
        return f"{counted(access.transactions, transaction)}, {access.least} needed"
    if access.space == "shared":
        clocks = counted(access.clocks, "clock")
        return f"{clocks}, {access.conflicts} for bank conflicts"
    return counted(access.bytes, "byte")


def _around(lines: Sequence[str], place: int) -> list[int]:
    """Return the places of the lines that open the blocks around a line, innermost first."""
    found = []
    depth = _indentation(lines[place]) if 0 <= place < len(lines) else 0
    for before in range(min(place, len(lines)) - 1, -1, -1):
        line = lines[before]
        if line.rstrip().endswith("{") and _indentation(line) < depth:
            found.append(before)
            depth = _indentation(line)
    return found


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _schedule(
    loops: Sequence[str],
    begin: int,
    origins: Mapping[int, LineOrigin],
    steps: Sequence[Step],
) -> list[Line]:
    """Return the steps, each with the lines of the loop IR that it made.

    Without `steps`, return the primitives that origins name.
    """
    made: defaultdict[LineOrigin, list[int]] = defaultdict(list)
    for place in range(len(loops)):
        for number in (place, *_around(loops, place)):
            origin = origins.get(begin + number)
            if origin is not None and origin.primitive:
                made[origin].append(begin + place)
                break
    if not steps:
        return [_call(origin, numbers) for origin, numbers in made.items()]
    linked: defaultdict[int, list[int]] = defaultdict(list)
    for origin, numbers in made.items():
        for step in _steps_of(origin, steps):
            linked[step] += numbers
    return [_call(step, sorted(linked[k])) for k, step in enumerate(steps)]


def _call(primitive: Step | LineOrigin, numbers: Sequence[int]) -> Line:
    """Return the line of a primitive, with its file. Folders are left out: they name the user."""
    text = f"{primitive}  # {os.path.basename(primitive.line)}"
    return Line(text, tuple(numbers))


def _steps_of(origin: LineOrigin, steps: Sequence[Step]) -> list[int]:
    """Return the positions of the steps of an origin, preferably those on its own stage."""
    call = (origin.primitive, origin.line)
    fitting = [k for k, step in enumerate(steps) if (step.primitive, step.line) == call]
    same = [k for k in fitting if steps[k].stage == origin.stage]
    exact = [k for k in same if any(str(a) == origin.axis for a in steps[k].args)]
    # The stage of a cache is named after the cached stage.
    made = [k for k in fitting if origin.stage.startswith(f"{steps[k].stage}.")]
    return exact or same or made or fitting
