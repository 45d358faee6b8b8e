"""What changes an instruction's operands or result beyond its name, as the ledger lists it.

    v_add_f32_e64 v1, -v2, |s3| clamp mul:2        ->  neg, abs, clamp, omod

Left out is what says the usual (`dst_sel:DWORD`), and what changes no value (how long a cache keeps
a line, which bytes a wait is for).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from refcomp.emulator.code.assembly import Instruction

_USUAL = {"DWORD", "UNUSED_PAD", "0xf"}
_IDLE = frozenset({"glc", "slc", "dlc", "sc1", "nt", "scc"})
# `sc0` has an atomic give what was there; of loads and stores it says where they are seen.
_OF_ATOMICS = "sc0"
_RENAMED = {"mul": "omod", "div": "omod"}
_FLAGS = {"negative": "neg", "absolute": "abs", "sign_extended": "sext"}


def modifiers_of(instruction: Instruction) -> frozenset[str]:
    """The names of all that is not as usual."""
    flags = {
        name
        for flag, name in _FLAGS.items()
        for o in instruction.operands
        if getattr(o, flag)
    }
    named = {
        _RENAMED.get(name, name)
        for name, value in instruction.modifiers.items()
        if value not in _USUAL and name not in _ignored(instruction.mnemonic)
    }
    return frozenset(flags | named)


@cache
def _ignored(mnemonic: str) -> frozenset[str]:
    return _IDLE if "atomic" in mnemonic else _IDLE | {_OF_ATOMICS}


def flags_of(
    modifiers: Mapping[str, str], name: str, count: int, *, usual: bool = False
) -> list[bool]:
    """Of a modifier such as `op_sel:[0,1]` a flag for each operand, at least `count`; `usual` where
    it tells none."""
    text = modifiers.get(name)
    flags = [flag == "1" for flag in text.strip("[]").split(",")] if text else []
    return [*flags, *[usual] * (count - len(flags))]
