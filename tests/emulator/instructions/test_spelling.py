"""The instructions that the tests of this folder run are such as LLVM assembles and prints."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from refcomp.emulator.generations.generation import ARCHITECTURES

_BEGINS = re.compile(r"(v|s|ds|flat|buffer|global|scratch)_[a-z0-9_]+ [a-z|\-0-9]")
_ENCODING = re.compile(r"_(e32|e64|sdwa|dpp)\b")
# What tests make up, and what the assembler does not take as it is printed.
_WRONG = re.compile(r"[{]|nonsense|f99|hwreg\(HW_REG_MODE\)")
# Files with lines that an assembler refuses, or that it prints in a shorter form.
_LEFT_OUT = {"anywhere", "output_modifiers", "pairs", "signalling", "wmma"}


def _files():
    """Tests that run instructions one by one."""
    for path in sorted(Path(__file__).parent.glob("**/test_*.py")):
        if path.stem.removeprefix("test_") not in _LEFT_OUT:
            yield path


def _texts(tree):
    """Strings that begin as instructions do, less those that are parts of others."""
    parts = {id(part) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in n.values}
    refused = {
        id(inner)
        for n in ast.walk(tree)
        if isinstance(n, ast.With) and "raises" in ast.dump(n.items[0].context_expr)
        for inner in ast.walk(n)
    }
    for n in ast.walk(tree):
        is_text = isinstance(n, ast.Constant) and isinstance(n.value, str)
        if is_text and id(n) not in parts | refused and _BEGINS.match(n.value):
            yield n.value


def _lines():
    found = set()
    for path in _files():
        for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            if "\n" not in text and "//" not in text and not _WRONG.search(text):
                found.add(text)
    return sorted(found)


def _plain(text):
    return " ".join(_ENCODING.sub("", text.partition("//")[0]).split())


def _printed(lines, gpu):
    """Those of the lines that the assembler takes and prints in the same way."""
    command = ["/usr/lib/llvm-19/bin/llvm-mc", "-arch=amdgcn", f"-mcpu={gpu}"]
    text = "\n".join(lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    printed = {_plain(line) for line in done.stdout.splitlines()}
    return {line for line in lines if any(p.startswith(_plain(line)) for p in printed)}


@pytest.mark.rocm
def test_instructions_are_spelled_as_llvm_does():
    lines = _lines()
    assert len(lines) > 350
    known = set().union(*(_printed(lines, gpu) for gpu in ARCHITECTURES))
    assert not sorted(set(lines) - known)
