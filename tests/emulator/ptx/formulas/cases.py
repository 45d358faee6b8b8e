"""Kernels of one instruction each: their text, numbers, runs and comparisons.

Each thread reads its sources as u64 of an array, and writes its results as u64 to another one. So
the whole emulator takes part: reader, operands, loads, the rule, stores.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refcomp.emulator.ptx.instructions.types import CARRY, bits_of
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.emulator.ptx.text.module import PtxInstruction
from tests.emulator.ptx.formulas.floats import python_float
from tests.emulator.ptx.formulas.spelled import ANY, ANY_NAN, Within
from tests.emulator.ptx.instructions.edges import floats, integers
from tests.emulator.ptx.instructions.exact_floats import FORMATS

THREADS = 64  # of a block
SCRATCH = 64  # bytes of memory that each thread has besides
_HEAD = f""".version 9.0
.target sm_100a
.address_size 64
.shared .align 16 .b8 block[{THREADS * SCRATCH}];
"""
Rows = list[list[int]]


@dataclass(frozen=True)
class Case:
    """An instruction in a kernel.

    Attributes:
        form: its name with all modifiers, such as "add.rn.f32".
        operation: text that computes %y0, %y1 ... of %x0, %x1 ...; %mem, %shared and %local are
            addresses of `SCRATCH` bytes of the thread.
        sources, results: types of PTX.
        expected: takes the sources of the threads of a block, returns their results.
        draw: changes the sources of a thread.
        before: text in front of the kernel.
        is_bounded: True if results are only held to a bound.
    """

    form: str
    operation: str
    sources: tuple[str, ...]
    results: tuple[str, ...]
    expected: Callable[[Rows], Sequence[Sequence[Any]]]
    draw: Callable[[list[int]], None] = lambda row: None
    before: str = ""
    is_bounded: bool = False


@dataclass
class FormulaOutcome:
    """How results differ, and the instructions of the kernels that agree, by reference."""

    wrong: list[str] = field(default_factory=list)
    seen: dict[str, list[PtxInstruction]] = field(default_factory=dict)

    def add(self, case: Case, instructions: Sequence[PtxInstruction]) -> None:
        """Add the instructions of a case that agrees."""
        for one in instructions:
            name = ".".join([one.opcode, *one.modifiers])
            reference = "bound" if case.is_bounded and name == case.form else "formula"
            self.seen.setdefault(reference, []).append(one)


def check_cases(cases: Sequence[Case], blocks: int = 1) -> FormulaOutcome:
    """Run the cases on the emulator."""
    gpu = EmulatedNvidiaGpu(size=1 << 24)
    heads = "".join(dict.fromkeys(case.before for case in cases))
    texts = [_HEAD, heads, *(kernel_text(f"k{n}", case) for n, case in enumerate(cases))]
    loaded = gpu.load("".join(texts))
    scratch = np.zeros(blocks * THREADS * SCRATCH, np.uint8)
    outcome = FormulaOutcome()
    for number, case in enumerate(cases):
        rows = operands(case, blocks * THREADS)
        given = np.array(rows, np.uint64).reshape(len(rows), -1)
        results = np.zeros((len(rows), len(case.results)), np.uint64)
        extents = ((blocks, 1, 1), (THREADS, 1, 1))
        report = gpu.run(loaded, f"k{number}", *extents, [given, results, scratch])
        told = [str(one) for one in report.findings] or [*_differences(case, rows, results)]
        if told:
            outcome.wrong.append(f"{case.form}: {told[0]}")
        else:
            outcome.add(case, loaded.module.functions[f"k{number}"].instructions)
    return outcome


def _differences(case: Case, rows: Rows, results: Any) -> Iterator[str]:
    for first in range(0, len(rows), THREADS):
        given = rows[first : first + THREADS]
        expected = case.expected(given)
        found = results[first : first + THREADS].tolist()
        for row, ours, theirs in zip(given, found, expected, strict=True):
            pairs = zip(ours, theirs, case.results, strict=False)
            if not all(agrees(*pair) for pair in pairs):
                yield f"of {[*map(hex, row)]} gives {[*map(hex, ours)]}, not {_shown(theirs)}"


def _shown(expected: Sequence[Any]) -> str:
    return str([hex(one) if isinstance(one, int) else one for one in expected])


def agrees(bits: int, wanted: Any, kind: str) -> bool:
    """True if the bits are what is wanted."""
    if wanted == ANY:
        return True
    if isinstance(wanted, tuple):  # of packed halves
        half = kind.removesuffix("x2")
        parts = (bits & 0xFFFF, bits >> 16)
        return all(agrees(part, one, half) for part, one in zip(parts, wanted, strict=True))
    if wanted == ANY_NAN:
        return FORMATS[kind].is_nan(bits)
    if isinstance(wanted, Within):
        value = python_float(bits, kind)
        return not math.isnan(value) and wanted.low <= value <= wanted.high
    return bool(bits == wanted)


# Numbers.


def operands(case: Case, count: int) -> Rows:
    """The bits of the sources for each thread: extremes of their types, and random ones."""
    draw = random.Random(case.form)
    kinds = case.sources
    pools = [pool_of(kind) for kind in kinds]
    rows = [[draw.choice(pool) for pool in pools] for _ in range(count)]
    # Neighbours cancel, and divide without a rest.
    for row in rows[::8]:
        for number, kind in enumerate(kinds):
            if kind == kinds[0] and bits_of(kind) > 1:
                row[number] = row[0] ^ draw.choice((0, 1))
    for row in rows:
        case.draw(row)
    return rows


def pool_of(kind: str) -> list[int]:
    """Bits of a type to draw from."""
    if kind in ("pred", CARRY):
        return [0, 1]
    part, _, count = kind.partition("x")
    if part in FORMATS:
        pool = floats(FORMATS[part])
    elif part in ("e4m3", "e5m2", "ue8m0"):
        pool = [*range(256)]
    else:
        pool = integers(bits_of(part)) + ([31, 32, 33, 64, 255, 256] if bits_of(part) > 8 else [])
    if not count:
        return pool
    draw = random.Random(kind)
    width = bits_of(part)
    return [draw.choice(pool) | draw.choice(pool) << width for _ in range(2 * len(pool))]


# Text.


def kernel_text(name: str, case: Case) -> str:
    """A kernel that loads the sources, does the operation, and stores the results."""
    body: list[str] = []
    for number, kind in enumerate(case.sources):
        body.append(f"ld.global.b64 %v, [%in+{8 * number}];")
        if kind == CARRY:  # the last source
            body.append("cvt.u32.u64 %c, %v; add.cc.u32 %t, %c, 0xffffffff;")
        else:
            body.append(f".reg .{register_of(kind)} %x{number}; {_narrowed(f'%x{number}', kind)}")
    for number, kind in enumerate(case.results):
        if kind != CARRY:
            body.append(f".reg .{register_of(kind)} %y{number};")
    body.append(case.operation)
    for number, kind in enumerate(case.results):
        moved = "addc.u32 %t, 0, 0; cvt.u64.u32 %v, %t;"
        if kind != CARRY:
            moved = _widened(f"%y{number}", kind)
        body.append(f"{moved} st.global.b64 [%out+{8 * number}], %v;")
    return _KERNEL.format(
        name=name,
        body="\n".join(body),
        source_bytes=8 * len(case.sources),
        result_bytes=8 * len(case.results),
    )


_KERNEL = f"""
.visible .entry {{name}}(.param .u64 a, .param .u64 r, .param .u64 m) {{{{
.reg .b64 %in, %out, %v, %n, %mem; .reg .b32 %i, %j, %t, %c, %shared, %local;
.reg .b16 %s; .reg .pred %q;
.local .align 16 .b8 own[{SCRATCH}];
mov.u32 %i, %tid.x; mov.u32 %j, block; mad.lo.u32 %shared, %i, {SCRATCH}, %j; mov.u32 %local, own;
mov.u32 %j, %ctaid.x; mad.lo.u32 %i, %j, {THREADS}, %i; cvt.u64.u32 %n, %i;
ld.param.u64 %in, [a]; mad.lo.u64 %in, %n, {{source_bytes}}, %in;
ld.param.u64 %out, [r]; mad.lo.u64 %out, %n, {{result_bytes}}, %out;
ld.param.u64 %mem, [m]; mad.lo.u64 %mem, %n, {SCRATCH}, %mem;
{{body}}
ret;
}}}}
"""


def register_of(kind: str) -> str:
    """The type of a register for values of a type."""
    if kind in ("pred", "f32", "f64"):
        return kind
    return f"b{max(16, bits_of(kind))}"


def _narrowed(name: str, kind: str) -> str:
    """Move the u64 %v to a register."""
    width = bits_of(kind)
    if kind == "pred":
        return f"setp.ne.u64 {name}, %v, 0;"
    if width == 64:
        return f"mov.b64 {name}, %v;"
    if width == 32:
        return f"cvt.u32.u64 %t, %v; mov.b32 {name}, %t;"
    return f"cvt.u16.u64 {name}, %v;"


def _widened(name: str, kind: str) -> str:
    """Move a register to the u64 %v."""
    width = bits_of(kind)
    if kind == "pred":
        return f"selp.b64 %v, 1, 0, {name};"
    if width == 64:
        return f"mov.b64 %v, {name};"
    if width == 32:
        return f"mov.b32 %t, {name}; cvt.u64.u32 %v, %t;"
    return f"and.b16 %s, {name}, {(1 << width) - 1}; cvt.u64.u16 %v, %s;"
