"""Kernels with one thing wrong that need not change a result: each is told of, as what and where.

Machine code: each wait left out or made too weak, each barrier left out. Loop IR: an index changed,
a guard dropped or widened, an element left unwritten, one element written by two groups or threads.
Right kernels are never told of.
"""

import re

import numpy as np
import pytest

from refcomp.emulator.code.findings import OUT_OF_BOUNDS, RACE, READ_ONLY, UNDEFINED, WAIT
from refcomp.emulator.generations.generation import ARCHITECTURES
from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep.interpret import interpret
from tests.emulator.observers.hazards.hazard_kernels import (
    KERNELS,
    compile_located,
    draw_arrays,
    expected,
    run_hazardous,
)

pytestmark = [pytest.mark.rocm, pytest.mark.search]
_ADDRESS = re.compile(r"at (0x[0-9a-f]+)")
_LINE = re.compile(r"kernels\.ir:(\d+)")
_INSTRUCTION = re.compile(r"\t(\S+)(.*?)\s*// ([0-9A-F]+):")
_COUNT = re.compile(r"\((\d+)\)|(?<=null, )0x([0-9a-f]+)")
_DELETED = re.compile(r"\t[^/]*")
# Broken code that is right none the less, as kernel, broken line and what follows: the only write
# that may be under way at the barrier of `ends` is of an end, which the wave that wrote it reads.
_HARMLESS = {("ends", "s_waitcnt lgkmcnt(1)", "s_barrier")}
# The old text, the new one, what is told, and what stands in a line that is named.
_CHANGES = {
    "scale": [
        ("C@[g * 128 + t]", "C@[g * 127 + t]", RACE, "C@["),
        ("C@[g * 128 + t]", "C@[t]", RACE, "C@["),
        ("C@[g * 128 + t]", "C@[g * 128 + t // 2]", RACE, "C@["),
        ("C@[g * 128 + t]", "A@[g * 128 + t]", READ_ONLY, "A@["),
        ("A@[255", "A@[256", OUT_OF_BOUNDS, "A@[256"),
    ],
    "mirror": [
        ("S@[127 - t]", "S@[128 - t]", OUT_OF_BOUNDS, "S@[128"),
        ("S@[127 - t]", "S@[126 - t]", OUT_OF_BOUNDS, "S@[126"),
        ("S@[t] = A", "S@[t + 1] = A", OUT_OF_BOUNDS, "S@["),
        ("S@[t] = A", "S@[t // 2] = A", RACE, "S@["),
        ("S@[t] = A", "if (t != 77) { S@[t] = A", UNDEFINED, "C@["),
        ("C@[g * 128 + t]", "C@[g * 64 + t]", RACE, "C@["),
        ("          barrier\n", "", RACE, "S@["),
    ],
    "tile": [
        ("% 128] }", "% 129] }", OUT_OF_BOUNDS, "S@["),
        ("(k < 2)", "(k < 1)", RACE, "S@["),
        ("S@[t] = A", "if (t != 17) { S@[t] = A", UNDEFINED, "C@["),
        ("S@[t] = A", "S@[t - t % 2] = A", RACE, "S@["),
        ("            barrier\n", "", RACE, "S@["),
        ("C@[g * 128 + t]", "C@[g * 100 + t]", RACE, "C@["),
    ],
    "sums": [
        ("S@[(k + 1) % 2 * 128 + t]", "S@[k % 2 * 128 + t]", RACE, "S@["),
        ("S@[(k + 1) % 2 * 128 + t]", "S@[t]", RACE, "S@["),
        ("1 << k <= t", "0 <= t", OUT_OF_BOUNDS, "S@["),
        ("S: f32[256]", "S: f32[255]", OUT_OF_BOUNDS, "S@["),
        ("S@[255 - t]", "S@[256 - t]", OUT_OF_BOUNDS, "S@["),
        ("            barrier\n", "", RACE, "S@["),
    ],
    "ends": [
        ("if (t == 0)", "if (t == 128)", UNDEFINED, "C@["),
        ("if (t == 0)", "if (0 <= t)", RACE, "S@[0]"),
        ("if (t == 127)", "if (t == 128)", UNDEFINED, "C@["),
        ("if (t == 127)", "if (100 < t)", RACE, "S@[129]"),
        ("S@[t + 2]", "S@[t + 3]", OUT_OF_BOUNDS, "S@["),
        ("S@[129]", "S@[128]", UNDEFINED, "C@["),
        ("S: f32[130]", "S: f32[129]", OUT_OF_BOUNDS, "S@["),
        ("          barrier\n", "", RACE, "S@["),
    ],
    "turns": [
        ("S@[(k + 1) % 2 * 128 + t]", "S@[k % 2 * 128 + t]", RACE, "S@["),
        ("k % 2 * 128 + (t + 64) % 128", "(t + 64) % 128", RACE, "S@["),
        ("(t + 64) % 128", "(t + 64) % 129", OUT_OF_BOUNDS, "S@["),
        ("S@[127 - t]", "S@[127 - t * 2]", OUT_OF_BOUNDS, "S@["),
        ("            barrier\n", "", RACE, "S@["),
    ],
    "twice": [
        ("C@[g * 128 + 127 - t]", "C@[(g * 128 + 128 + t) % 256]", RACE, "C@["),
        ("C@[g * 128 + t] = s", "C@[t] = s", RACE, "C@["),
        ("        barrier\n", "", RACE, "C@["),
        ("          barrier\n", "", RACE, "C@["),
        ("C@[g * 128 + t] = A", "C@[g * 127 + t] = A", RACE, "C@["),
    ],
    "counts": [
        ("atomic add F[t] with H@[t]", "F@[t] = F@[t] + H@[t]", RACE, "F@["),
        ("if (t < 16) { H", "if (t < 15) { H", UNDEFINED, "H"),
        ("if (t < 16) { H", "if (t < 17) { H", OUT_OF_BOUNDS, "H@["),
        ("if (t < 16) { atomic", "if (t < 33) { atomic", OUT_OF_BOUNDS, "H@["),
        ("          barrier\n", "", RACE, "H"),
        ("(g + t) % 16", "(g + t) % 17", OUT_OF_BOUNDS, "H["),
    ],
    "turned": [
        ("S@[y * 9 + x] = A", "S@[y * 8 + x] = A", UNDEFINED, "C@["),
        ("C@[g * 128 + x * 16 + y] = S", "C@[x * 16 + y] = S", RACE, "C@["),
        ("(15 - y)", "(16 - y)", OUT_OF_BOUNDS, "S@["),
        ("          barrier\n", "", RACE, "S@["),
    ],
    "product": [
        ("P@[y * 16 + x] = ", "P@[y * 8 + x] = ", RACE, "P@["),
        ("Q@[(y + 8) * 16 + x] =", "Q@[y * 16 + x] =", UNDEFINED, "C@["),
        ("C@[g * 128 + y * 16 + x]", "C@[g * 128 + y * 8 + x]", RACE, "C@["),
        ("C@[g * 128 + y * 16 + x]", "C@[y * 16 + x]", RACE, "C@["),
        ("Q@[r * 16 + x]", "Q@[r * 40 + x]", OUT_OF_BOUNDS, "Q@["),
        ("            barrier\n", "", RACE, "@["),
    ],
}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def right(request):
    return compile_located([parse_func(text) for text in KERNELS.values()], request.param)


@pytest.mark.parametrize("name", KERNELS)
def test_right_kernels_are_not_told_of(name, right):
    findings, arrays = run_hazardous(right, name)
    assert not findings, "\n".join(map(str, findings))
    c, f = expected(name, arrays["A"])
    np.testing.assert_array_equal(arrays["C"], c)
    np.testing.assert_array_equal(arrays["F"], f)


# Machine code.


def _instructions(code, name):
    """Numbers of lines that hold instructions of a kernel."""
    lines = code.assembly.splitlines()
    start = next(k for k, line in enumerate(lines) if line.endswith(f"<{name}>:"))
    for number in range(start, len(lines)):
        if match := _INSTRUCTION.match(lines[number]):
            yield number, match
            if match[1] == "s_endpgm":
                return


def _weaker(line):
    """The line with one more access that may be under way, for each counter."""
    for match in _COUNT.finditer(line.partition("//")[0]):
        more = int(match[1] or match[2], 16 if match[2] else 10) + 1
        start, end = match.span(1 if match[1] else 2)
        yield line[:start] + f"{more:x}" + line[end:]


def _broken(code, name):
    """Texts with one wait or barrier left out or too weak: what is told of them, and where; the
    broken line, and what follows it."""
    lines = code.assembly.splitlines()
    for number, match in _instructions(code, name):
        if not match[1].startswith(("s_waitcnt", "s_barrier")):
            continue
        changed = [_DELETED.sub("\ts_nop 0    ", lines[number], count=1)]
        kind = RACE if match[1] == "s_barrier" else WAIT
        changed += _weaker(lines[number]) if kind == WAIT else ()
        for line in changed:
            text = "\n".join([*lines[:number], line, *lines[number + 1 :]])
            following = lines[number + 1].partition("//")[0].strip()
            yield text, kind, int(match[3], 16), (line.partition("//")[0].strip(), following)


def _is_around(finding, place):
    """Whether the two instructions that are told of are parted by a place: in order, or in a loop
    by way of its end."""
    first = int(_ADDRESS.search(finding.what)[1], 16)
    second = finding.instruction.address
    return first < place < second if first < second else place > first or place < second


def test_broken_machine_code_is_told_of(right, record_property):
    count, unseen = 0, []
    for name in KERNELS:
        for text, kind, place, what in _broken(right, name):
            if (name, *what) in _HARMLESS:
                continue
            findings, _ = run_hazardous(right, name, text)
            same = [one for one in findings if one.kind == kind]
            count += 1
            if not any(_is_around(one, place) for one in same):
                unseen.append(f"{name} at {place:#x}: {what}: {findings}")
    record_property("summary", f"{count - len(unseen)} of {count} broken machine codes told of")
    assert count >= 100 and not unseen, "\n".join(unseen)


# Loop IR.


def _mutated(name, number, old, new):
    text = KERNELS[name].replace(f"func {name}(", f"func {name}_{number}(", 1)
    assert old in text, old
    head, _, rest = text.partition(old)
    if "{" in new and "{" not in old:  # a guard around one statement
        line, _, rest = rest.partition("\n")
        rest = line + " }\n" + rest
    return parse_func(head + new + rest)


@pytest.mark.parametrize("name", KERNELS)
def test_the_interpreter_refuses_them_too(name):
    """It knows nothing of waves and waits: what is held against the emulator is wrong indeed."""
    interpret(parse_func(KERNELS[name]), list(draw_arrays().values()))
    for number, (old, new, *_) in enumerate(_CHANGES[name]):
        with pytest.raises(InterpretError, match="race|out of range|never written"):
            interpret(_mutated(name, number, old, new), list(draw_arrays().values()))


def _is_told(findings, kind, mention, loop_ir):
    lines = loop_ir.splitlines()
    return any(
        mention in lines[int(number) - 1]
        for finding in findings
        if finding.kind == kind
        for number in _LINE.findall(str(finding))
    )


@pytest.mark.parametrize("gpu", ARCHITECTURES)
def test_wrong_kernels_are_told_of(gpu, record_property):
    mutants = [
        (f"{name}_{number}", _mutated(name, number, *change[:2]), *change)
        for name, changes in _CHANGES.items()
        for number, change in enumerate(changes)
    ]
    # LLVM makes what it likes of accesses that it knows to be wrong.
    code = compile_located([mutant[1] for mutant in mutants], gpu, passes="always-inline,sroa")
    unseen = []
    for name, _, old, new, kind, mention in mutants:
        findings, _ = run_hazardous(code, name)
        if not _is_told(findings, kind, mention, code.loop_ir):
            unseen.append(f"{name}: {old} -> {new}: {[str(one) for one in findings]}")
    count = len(mutants)
    record_property("summary", f"{count - len(unseen)} of {count} wrong kernels told of")
    assert count >= 50 and not unseen, "\n".join(unseen)
