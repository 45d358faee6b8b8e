"""Read the report that ptxas prints with `-v`: registers, spills and memory of each kernel.

nvcc and NVRTC pass the report on, beside warnings of their own. Ensures: each kernel has exactly
one complete record for each architecture. Refuses with ToolchainError: a report that lacks a part,
or has a number that is not understood.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from refcomp.foundation.errors import ToolchainError

# NVRTC prints continued lines with a prefix of their own.
_PREFIX = re.compile(r"ptxas (?:info    :|        \.) ?")
_ENTRY = re.compile(r"Compiling entry function '([^'\s]+)' for '(sm_\w+)'")
_FRAME = re.compile(
    r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, "
    r"(\d{1,9}) bytes spill loads"
)
_USED = re.compile(r"Used (\d{1,9}) registers((?:, .*)?)")
_BARRIERS = re.compile(r"used (\d{1,9}) barriers")
_MEMORY = re.compile(r"(\d{1,9}) bytes (cumulative stack size|smem|lmem|cmem\[\d+\])")
# Counts that no kernel of refcomp has, but which are not errors.
_OTHER = re.compile(r"\d{1,9} (?:textures?|surfaces?|samplers?)")
_MAX_SHOWN = 80  # characters of a line in messages


@dataclass(frozen=True, slots=True)
class PtxasRecord:
    """ptxas's figures for one kernel on one architecture."""

    kernel: str  # symbol
    arch: str  # such as `sm_90`
    registers: int  # of a thread
    barriers: int  # of a block
    stack_bytes: int  # of a thread, those of called functions included
    spill_store_bytes: int  # written to memory by the spilling instructions of a thread
    spill_load_bytes: int  # read again
    shared_bytes: int  # of a block, without dynamic shared memory
    constant_bytes: int  # of all banks; 0 where ptxas does not list them


def read_ptxas_report(text: str) -> tuple[PtxasRecord, ...]:
    """Return a record of each kernel, in the order of the report.

    Raises:
        ToolchainError: the report is damaged.
    """
    records: dict[tuple[str, str], PtxasRecord] = {}
    for kernel, arch, lines in _entries(text):
        if (kernel, arch) in records:
            raise _refuse(f"{kernel} is listed twice for {arch}")
        records[kernel, arch] = _record(kernel, arch, lines)
    return tuple(records.values())


def _entries(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield kernel, architecture and following lines of each section."""
    current: tuple[str, str, list[str]] | None = None
    for line in text.splitlines():
        bare = _PREFIX.sub("", line).strip()
        if match := _ENTRY.fullmatch(bare):
            if current:
                yield current
            current = (match[1], match[2], [])
        elif bare.startswith("Compiling entry function"):
            raise _refuse(f"a line is not understood: {bare[:_MAX_SHOWN]!r}")
        elif current:
            current[2].append(bare)
    if current:
        yield current


def _record(kernel: str, arch: str, lines: list[str]) -> PtxasRecord:
    # Functions that are not inlined have frames of their own.
    frames = [match for line in lines if (match := _FRAME.fullmatch(line))]
    used = [match for line in lines if (match := _USED.fullmatch(line))]
    if not frames or len(used) != 1:
        raise _refuse(f"the figures of {kernel} for {arch} are not complete")
    sizes = _sizes(used[0][2])
    stack = max(int(frame[1]) for frame in frames)
    return PtxasRecord(
        kernel=kernel,
        arch=arch,
        registers=int(used[0][1]),
        barriers=sizes.pop("barriers", 0),
        stack_bytes=max(stack, sizes.pop("cumulative stack size", 0)),
        spill_store_bytes=sum(int(frame[2]) for frame in frames),
        spill_load_bytes=sum(int(frame[3]) for frame in frames),
        shared_bytes=sizes.pop("smem", 0),
        constant_bytes=sum(
            size for name, size in sizes.items() if name.startswith("cmem")
        ),
    )


def _sizes(text: str) -> dict[str, int]:
    """Return the figures behind the number of registers: name -> number."""
    sizes: dict[str, int] = {}
    for item in filter(None, text.split(", ")):
        if match := _BARRIERS.fullmatch(item):
            sizes["barriers"] = int(match[1])
        elif match := _MEMORY.fullmatch(item):
            sizes[match[2]] = int(match[1])
        elif not _OTHER.fullmatch(item):
            raise _refuse(f"a figure is not understood: {item[:_MAX_SHOWN]!r}")
    return sizes


def _refuse(why: str) -> ToolchainError:
    return ToolchainError(
        "the report of ptxas cannot be read",
        why=why,
        remedy="use a version of CUDA that refcomp's tests know: 12 or 13",
    )
