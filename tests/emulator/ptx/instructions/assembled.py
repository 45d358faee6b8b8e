"""What NVIDIA's ptxas says about instructions: the forms of PTX that are legal."""

from __future__ import annotations

import glob
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from refcomp.emulator.ptx.instructions.types import CARRY, bits_of
from refcomp.emulator.ptx.text.module import Pair, Vector
from tests.emulator.ptx.instructions.worded import instruction, rule

ARCHITECTURE = "sm_100a"
_HEAD = f".version 9.0\n.target {ARCHITECTURE}\n.address_size 64\n.visible .entry k() {{\n"


def refusals(texts: list[str], folder: Path) -> dict[str, str]:
    """The instructions that ptxas refuses, with its words."""
    source = folder / "k.ptx"
    source.write_text(_HEAD + "\n".join(map(_in_scope, texts)) + "\nret;\n}\n")
    command = [_ptxas(), f"-arch={ARCHITECTURE}", str(source), "-o", str(folder / "k.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"line (\d+); error\s*: (.*)", done.stderr)
    assert found or done.returncode == 0, done.stderr
    first = _HEAD.count("\n") + 1
    return {texts[int(line) - first]: words for line, words in found}


def _ptxas() -> str:
    wheel = find_spec("nvidia")
    roots = (wheel and wheel.submodule_search_locations) or ()
    places = [f"{root}/*/bin/ptxas" for root in roots] + ["/usr/local/cuda*/bin/ptxas"]
    found = [path for place in places for path in sorted(glob.glob(place))]
    return shutil.which("ptxas") or found[0]


def _in_scope(text: str) -> str:
    """The instruction with registers of the types that its rule has, in a scope of its own."""
    described = rule(text)
    kinds = [kind for kind in (*described.results, *described.sources) if kind != CARRY]
    names = [f"%x{number}" for number in range(len(kinds))]
    declared = " ".join(
        f".reg .{_register(kind)} {name};" for kind, name in zip(kinds, names, strict=True)
    )
    operands = list(_spelled(text, iter(names)))
    if text.startswith("lop3"):
        operands[4] = "0xe8"  # the table must be a number
    return f"{{ {declared} {text.split()[0]} {', '.join(operands)}; }}"


def _spelled(text: str, names: Iterator[str]) -> Iterator[str]:
    for operand in instruction(text).operands:
        if isinstance(operand, Vector):
            yield "{" + ", ".join(next(names) for _ in operand.parts) + "}"
        elif isinstance(operand, Pair):
            yield f"{next(names)}|{next(names)}"
        else:
            yield next(names)


def _register(kind: str) -> str:
    if kind in ("pred", "f32", "f64") or (kind[0] in "us" and "x" not in kind):
        return kind if bits_of(kind) > 8 or kind == "pred" else f"{kind[0]}16"
    return f"b{max(16, bits_of(kind))}"
