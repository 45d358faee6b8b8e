#!/usr/bin/env python3
"""Seeds mistakes in the PTX of CUDA kernels, one at a time, and counts those that are found.

    benchmarks/seed_wrong_ptx.py [--per-kernel 3] [--seed 0] [--only KERNEL] [--json FILE]

The kernels are those of tests/emulator/ptx (cuda_*.cu), compiled by nvcc at -O3. A mistake changes
one line. Each wrong kernel runs as in its test, with the check for races. It has one of three
outcomes:

- a finding names its kind and line, or
- no finding does, but the result is wrong (a test that compares values sees it), or
- neither: it is unnoticed, or equivalent to the right kernel in this launch.

Two kinds of evidence say that a wrong kernel is equivalent. A probe is a trap in place of the
changed line, or of the dropped guard. It shows that no thread of this launch reaches the line. All
others were examined by hand. The reasons are in `seed_wrong_ptx_equivalent.json`, by kernel,
mistake and instruction.

Exit codes: 0 at least 95 % of those that are not equivalent are found or noticed, 1 fewer are.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refcomp.emulator.limits import Limits
from refcomp.emulator.ptx.execution.launch import PtxReport
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.foundation.errors import RefcompError
from refcomp.toolchain import find_tools, load_description
from tests.emulator.ptx.cuda_algorithms import ALGORITHMS
from tests.emulator.ptx.cuda_cases import Case
from tests.emulator.ptx.cuda_cooperation import COOPERATION
from tests.emulator.ptx.cuda_kernels import CASES

_ROOT = Path(__file__).parents[1]
_FILES = {
    "cuda_kernels": ("sm_80", CASES),
    "cuda_cooperation": ("sm_90", COOPERATION),
    "cuda_algorithms": ("sm_90", ALGORITHMS),
}
EQUIVALENT = Path(__file__).with_name("seed_wrong_ptx_equivalent.json")
FINDING, VALUE, UNNOTICED, SAME = "finding", "value", "unnoticed", "equivalent"
_SHARE = 0.95
_BEFORE = 9  # the number of lines before a line on which a mistake may depend


@dataclass(frozen=True)
class SeededMistake:
    """A way to make a line of PTX wrong.

    Attributes:
        name: a description of the mistake.
        wrong: the function of a line and some lines before it that returns the wrong line, or None
            if the mistake does not fit.
        probe: the function of a line that returns a line with a trap, which runs where the mistake
            matters. None: only a trap in place of the line is tried.
    """

    name: str
    wrong: Callable[[str, str], str | None]
    probe: Callable[[str], str] | None = None


@dataclass(frozen=True)
class SeededOutcome:
    """The outcome of one wrong kernel.

    Attributes:
        found: FINDING, VALUE, UNNOTICED or SAME.
        kinds: the kinds of the findings.
        why: the reason why an equivalent kernel is equivalent.
    """

    kernel: str
    mistake: str
    line: int
    right: str
    wrong: str
    found: str
    kinds: tuple[str, ...]
    why: str = ""


_ACCESS = re.compile(
    r"(?P<head>\t(?:@!?%p\d+ )?(?:ld|st|atom|red)\.(?!param|local)[\w.:]*?"
    r"(?:\.v(?P<many>[24]))?\.[usbf](?P<bits>\d+)[^\[]*\[[^\]+]+)(?P<offset>\+-?\d+)?(?P<tail>\].*)"
)
_GUARD = re.compile(r"\t@(?P<not>!?)(?P<register>%p\d+) (?P<rest>(?P<opcode>\w+).*)")
_BARRIER = re.compile(r"\t(?:bar\.sync|barrier\.sync|bar\.cta\.sync|barrier\.cta\.sync)")
_COUNTED = re.compile(r"(\s*bar(?:rier)?\.\S+ \s*)(\S+), ([%\w]+);")
_UPDATE = re.compile(
    r"\t(?P<opcode>atom|red)\.(?P<form>[\w.:]+?)\.(?P<update>add|min|max|and|or|xor|exch)\."
    r"(?P<type>\w+) \s*(?:(?P<result>%\w+), )?(?P<place>\[[^\]]+\]), (?P<value>[^,;]+);"
)


def _deleted(pattern: str) -> Callable[[str, str], str | None]:
    return lambda line, before: "// deleted" if re.match(pattern, line) else None


def _no_repeat(line: str, before: str) -> str | None:
    """Delete the branch that repeats a wait for a phase."""
    _, wait, behind = before.rpartition("mbarrier.")
    is_wait = re.match(r"(try|test)_wait", behind) is not None and " bra" not in behind
    return "// deleted" if wait and is_wait and " bra" in line else None


def _dropped_branch(line: str, before: str) -> str | None:
    found = _GUARD.match(line)
    return "// deleted" if found and found["opcode"] == "bra" else None


def _traps_where_taken(line: str) -> str:
    return re.sub(r" bra.*", " trap;", line)


def _next_index(line: str, before: str) -> str | None:
    found = _ACCESS.match(line)
    if found is None or "cp.async" in line:
        return None
    step = int(found["bits"]) // 8 * int(found["many"] or 1)
    offset = int((found["offset"] or "+0")[1:]) + step
    return f"{found['head']}+{offset}{found['tail']}"


def _wrong_stride(line: str, before: str) -> str | None:
    found = re.match(r"(\tmul\.wide\.[us]32 \s*[^;]*, )(\d+);", line)
    return f"{found[1]}{2 * int(found[2])};" if found else None


def _other_barrier(line: str, before: str) -> str | None:
    found = _COUNTED.match(line)
    return f"{found[1]}13, {found[3]};" if found else None


def _fewer_threads(line: str, before: str) -> str | None:
    found = _COUNTED.match(line)
    if found is None:
        return None
    head, barrier, count = found.groups()
    return f"{{ .reg .b32 %few; sub.u32 %few, {count}, 32; {head.strip()} {barrier}, %few; }}"


def _narrowed(line: str, before: str) -> str | None:
    """Read, compute and store in three steps."""
    found = _UPDATE.match(line)
    if found is None:
        return None
    kind, place, update = found["type"], found["place"], found["update"]
    spaces = [one for one in found["form"].split(".") if one in ("global", "shared")]
    space = "".join(f".{one}" for one in spaces)
    plain = f"b{kind[1:]}" if update in ("and", "or", "xor", "exch") else kind
    step = f"{update}.{plain} %new, %old, {found['value']};"
    if update == "exch":
        step = f"mov.{plain} %new, {found['value']};"
    result = f" mov.{plain} {found['result']}, %old;" if found["result"] else ""
    return (
        f"\t{{ .reg .{plain} %old; .reg .{plain} %new; ld{space}.{plain} %old, {place}; {step} "
        f"st{space}.{plain} {place}, %new;{result} }}"
    )


MISTAKES = (
    SeededMistake("deleted barrier", lambda line, _: "" if _BARRIER.match(line) else None),
    SeededMistake("deleted barrier of a warp", _deleted(r"\tbar\.warp\.sync")),
    SeededMistake("deleted arrival", _deleted(r"\t(bar\.arrive|mbarrier\.arrive)")),
    SeededMistake("deleted wait for copies", _deleted(r"\tcp\.async\.wait")),
    SeededMistake("deleted wait for a phase", _no_repeat),
    SeededMistake("other barrier", _other_barrier),
    SeededMistake("barrier of fewer threads", _fewer_threads),
    SeededMistake("dropped branch", _dropped_branch, _traps_where_taken),
    SeededMistake("next index", _next_index),
    SeededMistake("doubled stride", _wrong_stride),
    SeededMistake("update that is not atomic", _narrowed),
)


def compiled(file: str) -> str:
    """Return a CUDA file of the tests as PTX by nvcc at -O3."""
    nvcc = find_tools(load_description("cuda")).paths["nvcc"]
    source = _ROOT / "tests" / "emulator" / "ptx" / f"{file}.cu"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernels.ptx"
        flags = ["-ptx", f"-arch={_FILES[file][0]}", "-O3"]
        subprocess.run([nvcc, *flags, str(source), "-o", str(made)], check=True, timeout=300)
        return made.read_text()


def owners(lines: Sequence[str]) -> list[str]:
    """Return the kernel of each line; "" for a line outside of kernels."""
    found = []
    name = ""
    depth = 0
    for line in lines:
        entry = re.match(r"(?:\.visible |\.weak )?\.entry (\w+)", line)
        name = entry[1] if entry else name
        found.append(name)
        before = depth
        depth += line.count("{") - line.count("}")
        if before and not depth:
            name = ""
    return found


def only(text: str, kernel: str) -> list[str]:
    """Return the lines of a file; those of other kernels are empty."""
    lines = text.splitlines()
    return [
        line if owner in ("", kernel) else ""
        for line, owner in zip(lines, owners(lines), strict=True)
    ]


def seeds(lines: Sequence[str], kernel: str) -> Iterator[tuple[SeededMistake, int, str]]:
    """Yield each mistake that fits a line of a kernel, the line's number from 0, and the wrong."""
    before = ""
    for number, (line, owner) in enumerate(zip(lines, owners(lines), strict=True)):
        for mistake in MISTAKES if owner == kernel else ():
            wrong = mistake.wrong(line, before)
            if wrong is not None:
                yield mistake, number, wrong
        before = "\n".join([*before.split("\n")[-_BEFORE:], line])


class SeededKernel:
    """A kernel, in which mistakes are seeded."""

    def __init__(self, text: str, case: Case) -> None:
        self.case = case
        self._lines = only(text, case.name)
        # A kernel that runs much longer than the correct kernel is taken to wait forever.
        steps = max(20 * self._run(self._lines)[0].steps, 20_000)
        self._limits = Limits(steps=steps, seconds=60)

    _limits = Limits()

    def seeds(self, per_mistake: int, rng: np.random.Generator) -> list[tuple]:
        """Draw some mistakes of each kind."""
        found = list(seeds(self._lines, self.case.name))
        drawn = []
        for mistake in MISTAKES:
            some = [one for one in found if one[0] is mistake]
            chosen = rng.permutation(len(some))[:per_mistake]
            drawn += [some[place] for place in sorted(chosen)]
        return drawn

    def outcome(self, mistake: SeededMistake, number: int, wrong: str) -> SeededOutcome:
        """Run the kernel with a mistake in the line `number`."""
        right = self._lines[number]
        lines = [*self._lines[:number], wrong, *self._lines[number + 1 :]]
        kinds: tuple[str, ...] = ()
        why = ""
        try:
            report, actual = self._run(lines)
            kinds = tuple(finding.kind for finding in report.findings)
            is_wrong = not kinds and self._differs(actual)
        except RefcompError as error:
            kinds = (f"error: {error.what}",)
            is_wrong = True
        found = FINDING if kinds else VALUE if is_wrong else UNNOTICED
        if found == UNNOTICED:
            why = self._reason(mistake, number)
            found = SAME if why else UNNOTICED
        return SeededOutcome(
            self.case.name,
            mistake.name,
            number + 1,
            right.strip(),
            wrong.strip(),
            found,
            kinds,
            why,
        )

    def _run(self, lines: Sequence[str]) -> tuple[PtxReport, tuple]:
        case = self.case
        gpu = EmulatedNvidiaGpu(size=16 << 20, hazards=True)
        actual = copy.deepcopy(case.arguments)
        with redirect_stdout(StringIO()):  # some kernels print
            report = gpu.run(
                gpu.load("\n".join(lines)),
                case.name,
                case.grid,
                case.block,
                actual,
                shared_bytes=case.shared_bytes,
                limits=self._limits,
            )
        return report, actual

    def _differs(self, actual: tuple) -> bool:
        try:
            self.case.check(actual)
        except AssertionError:
            return True
        return False

    def _reason(self, mistake: SeededMistake, number: int) -> str:
        """Return why a mistake changes nothing in this launch; "" if nothing says so."""
        right = self._lines[number]
        probes = [(lambda line: f"\ttrap; {line.strip()}", "the line does not run in this launch")]
        if mistake.probe is not None:
            why = "a trap in place of the guard is not reached: it guards no thread here"
            probes.append((mistake.probe, why))
        for probe, why in probes:
            lines = list(self._lines)
            lines[number] = probe(right)
            try:
                self._run(lines)
            except RefcompError:
                continue
            return why
        read = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
        instruction = " ".join(right.split())
        return str(read.get(f"{self.case.name}: {mistake.name}: {instruction}", ""))


def outcomes(
    names: Iterable[str], per_kernel: int, seed: int, texts: dict[str, str], processes: int = 1
) -> Iterator[SeededOutcome]:
    """Yield the outcomes of mistakes in some kernels; in all kernels if `names` is empty.

    Args:
        names: of the kernels.
        per_kernel: mistakes of each kind in a kernel, at most.
        seed: of the choice.
        texts: file -> its PTX.
        processes: that work at the same time.
    """
    wanted = set(names)
    asked = [
        (texts[file], file, case.name, per_kernel, seed)
        for file, (_, cases) in _FILES.items()
        for case in cases
        if file in texts and (not wanted or case.name in wanted)
    ]
    if processes == 1:
        for one in asked:
            yield from _of_kernel(one)
        return
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(_of_kernel, asked):
            yield from found


def _of_kernel(asked: tuple[str, str, str, int, int]) -> list[SeededOutcome]:
    """Return the outcomes of the mistakes in one kernel."""
    text, file, name, per_kernel, seed = asked
    case = next(case for case in _FILES[file][1] if case.name == name)
    rng = np.random.default_rng([seed, *name.encode()])
    kernel = SeededKernel(text, case)
    return [kernel.outcome(*one) for one in kernel.seeds(per_kernel, rng)]


def table(found: Sequence[SeededOutcome]) -> dict[str, dict[str, int]]:
    """Count the outcomes of each mistake, and of all."""
    names = [mistake.name for mistake in MISTAKES]
    ways = (FINDING, VALUE, UNNOTICED, SAME)
    counts = {
        name: {way: sum(o.mistake == name and o.found == way for o in found) for way in ways}
        for name in names
    }
    counts["all"] = {way: sum(counts[name][way] for name in names) for way in ways}
    return counts


def share(counts: dict[str, int]) -> float:
    """Return the share of wrong kernels, without equivalent ones, that are found or noticed."""
    noticed = counts[FINDING] + counts[VALUE]
    return noticed / max(noticed + counts[UNNOTICED], 1)


def main(argv: Sequence[str]) -> int:
    """Seed mistakes, and print what is found of each."""
    parser = argparse.ArgumentParser(description="Seeds mistakes in PTX.")
    parser.add_argument("--per-kernel", type=int, default=3, help="of each kind, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="that work at the same time")
    parser.add_argument("--only", action="append", default=[], metavar="KERNEL")
    parser.add_argument("--json", metavar="FILE", help="the file to write the outcomes to")
    asked = parser.parse_args(argv)
    texts = {file: compiled(file) for file in _FILES}
    found = []
    for one in outcomes(asked.only, asked.per_kernel, asked.seed, texts, asked.processes):
        found.append(one)
        if one.found == UNNOTICED:
            print(f"UNNOTICED {one.kernel}: {one.mistake}: {one.line}: {one.right}", flush=True)
    counts = table(found)
    print(f"{'mistake':28} finding   value  unnoticed  equivalent")
    for name, each in counts.items():
        cells = "".join(f"{each[way]:>8}" for way in (FINDING, VALUE, UNNOTICED, SAME))
        print(f"{name:28}{cells}")
    print(f"{share(counts['all']):.1%} found or noticed")
    if asked.json:
        command = (
            f"benchmarks/seed_wrong_ptx.py --per-kernel {asked.per_kernel} --seed {asked.seed}"
        )
        report = {
            "command": command,
            "share": round(share(counts["all"]), 4),
            "counts": counts,
            "outcomes": [asdict(one) for one in found],
        }
        Path(asked.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if share(counts["all"]) >= _SHARE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
