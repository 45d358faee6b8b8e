"""The texts of translated instructions and of the functions around them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from refcomp.foundation.resources import templates_dir

_FOLDER = "emulated_threads"
# The arguments of all functions of a module, in order: addresses (ptr) and numbers (i64).
FIELDS = {
    "arena": "ptr",  # memory of the device
    "arena.known": "ptr",  # the bits that were written; null if they are not watched
    "starts": "ptr",  # addresses of the live allocations, sorted
    "ends": "ptr",
    "allocations": "i64",  # their number
    "writable.starts": "ptr",  # addresses of the live allocations that may be written, sorted
    "writable.ends": "ptr",
    "writable": "i64",
    "base": "i64",  # the address of the first byte of `arena`
    "shared": "ptr",  # memory of the block that runs
    "shared.known": "ptr",
    "shared.limit": "i64",  # bytes of `shared` that a block may access
    "shared.bytes": "i64",  # bytes of `shared`
    "local": "ptr",  # local memory of the threads of the block, one after the other
    "local.known": "ptr",
    "local.limit": "i64",  # bytes that a thread may access
    "local.stride": "i64",
    "local.all": "i64",  # bytes of all threads
    "frames": "ptr",
    "frame.stride": "i64",  # bytes
    "journal": "ptr",  # the old contents of the memory that the block wrote
    "journal.count": "i64",  # records in the journal
    "journal.room": "i64",
    "steps": "i64",  # instructions of threads that ran
    "step.limit": "i64",  # limit of `steps` for a block
    "blocks": "ptr",  # numbers of blocks along x, y and z
    "first": "i64",  # the index in `blocks` of the first block to run
    "count": "i64",
    "threads": "i64",  # of a block
    "warps": "i64",
    "ctaid.x": "i64",
    "ctaid.y": "i64",
    "ctaid.z": "i64",
    "ntid.x": "i64",
    "ntid.y": "i64",
    "ntid.z": "i64",
    "nctaid.x": "i64",
    "nctaid.y": "i64",
    "nctaid.z": "i64",
    "dynamic": "i64",  # bytes of shared memory that the launch gives
    "symbols": "ptr",  # addresses of variables and parameters, as the kernel numbers them
    "windows": "ptr",  # for each check of an address, the allocation that it found last
}
NUMBER_OF = {name: number for number, name in enumerate(FIELDS)}
_MACRO = re.compile(r"^\s*(%\S+) = (field|address) (\S+)$", re.MULTILINE)
_HOLE = re.compile(r"\{(r|a|b|c|d|t|n|w|m|a\.t)\}")


@cache
def _table(name: str) -> Mapping[str, Any]:
    path = templates_dir() / _FOLDER / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def rows(table: str) -> Mapping[str, Any]:
    """Return the table of instructions of a name, such as "value"."""
    found: Mapping[str, Any] = _table("instructions")[table]
    return found


def frame(table: str) -> Mapping[str, Any]:
    """Return the table of functions around kernels of a name, such as "warps"."""
    found: Mapping[str, Any] = _table("frame")[table]
    return found


def filled(text: str, **holes: str) -> str:
    """Return the text of a row with its placeholders filled. Other braces stay."""
    return _HOLE.sub(lambda match: holes[match[1].replace(".", "_")], text)


def expanded(text: str) -> str:
    """Return lines of LLVM IR in which fields are loaded from the context."""

    def load(match: re.Match[str]) -> str:
        result, what, name = match.groups()
        place = result if what == "address" else f"{result}.at"
        line = f"  {place} = getelementptr i64, ptr %ctx, i64 {NUMBER_OF[name]}"
        if what == "address":
            return line
        return f"{line}\n  {result} = load {FIELDS[name]}, ptr {place}"

    return _MACRO.sub(load, text)


@cache
def module_head(is_watched: bool) -> str:
    """Return the functions that all modules have, except for those that depend on the kernel."""
    module = frame("module")
    parts = [module["head"]]
    for kind, name, bits in (("float", "f32", "i32"), ("double", "f64", "i64")):
        text = module["extremes"].replace("$t", kind).replace("$m", name)
        parts.append(text.replace("$i", bits))
    for size in (1, 2, 4, 8):
        known = module["journal_known"] if is_watched else ""
        text = module["journal"].replace("$known", known)
        parts.append(text.replace("$n", str(8 * size)).replace("$b", str(size)))
    for wanted in ("i8", "i16", "i32", "i64"):
        for kind, name in (("float", "f32"), ("double", "f64")):
            for verb in ("fptosi", "fptoui"):
                function = f"@llvm.{verb}.sat.{wanted}.{name}({kind})"
                parts.append(f"declare {wanted} {function}\n")
    return expanded("".join(parts))
