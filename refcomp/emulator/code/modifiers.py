"""The modifiers that change an instruction's operands or result, as the ledger lists them.

    v_add_f32_e64 v1, -v2, |s3| clamp mul:2        ->  neg, abs, clamp, omod

Modifiers with their usual value (`dst_sel:DWORD`) are left out. So are those that change no value,
such as how long a cache keeps a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from refcomp.emulator.code.assembly import Instruction

_USUAL = {"DWORD", "UNUSED_PAD", "0xf"}
_IDLE = frozenset({"glc", "slc", "dlc", "sc1", "nt", "scc"})
# `sc0` makes an atomic return the old value. On loads and stores it is the scope.
_OF_ATOMICS = "sc0"
_RENAMED = {"mul": "omod", "div": "omod"}


def modifiers_of(instruction: Instruction) -> frozenset[str]:
    """Return the names of all modifiers without their usual value."""
    flags = set()
    for operand in instruction.operands:
        if operand.negative:
            flags.add("neg")
        if operand.absolute:
            flags.add("abs")
        if operand.sign_extended:
            flags.add("sext")
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
    """Return the flags of a modifier such as `op_sel:[0,1]`, one for each operand.

    Args:
        modifiers: of the instruction.
        name: of the modifier.
        count: how many flags there are at least.
        usual: the value of flags that the modifier does not have.
    """
    text = modifiers.get(name)
    flags = [flag == "1" for flag in text.strip("[]").split(",")] if text else []
    return [*flags, *[usual] * (count - len(flags))]
