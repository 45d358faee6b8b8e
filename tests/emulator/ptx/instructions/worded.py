"""Rules of instructions that are written as text, such as `add.s32 d, a, b`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.rules import rule_of
from refcomp.emulator.ptx.instructions.types import dtype_of, unsigned_of
from refcomp.emulator.ptx.text.module import Operand, Pair, PtxInstruction, Register, Vector

Array = npt.NDArray[Any]


def instruction(text: str) -> PtxInstruction:
    """The instruction, whose operands are registers, pairs and vectors of registers."""
    name, _, rest = text.partition(" ")
    opcode, *modifiers = name.split(".")
    operands = tuple(map(_operand, re.findall(r"\{[^}]*\}|[^,{}\s]+", rest)))
    return PtxInstruction(0, 7, opcode, tuple(modifiers), operands, text)


def _operand(text: str) -> Operand:
    if text[0] == "{":
        return Vector(tuple(map(Register, re.findall(r"\w+", text))))
    if "|" in text:
        first, _, second = text.partition("|")
        return Pair(Register(first), Register(second))
    return Register(text)


def rule(text: str) -> ValueRule:
    return rule_of(instruction(text))


def run(text: str, *values: Any) -> Any:
    """The results for sources that are given as bits or as numbers of their types."""
    found = rule(text)
    assert len(found.sources) == len(values)
    pairs = zip(found.sources, values, strict=True)
    with np.errstate(all="ignore"):
        results = found.compute(*(as_source(value, kind) for kind, value in pairs))
    several = results if isinstance(results, tuple) else (results,)
    for kind, result in zip(found.results, several, strict=True):
        assert np.asarray(result).dtype == dtype_of(kind), (text, kind, np.asarray(result).dtype)
    return results


def as_source(value: Any, kind: str) -> Array:
    """A source as the emulator has it. Unsigned integers are bits, others numbers."""
    array = np.asarray(value)
    if array.dtype == dtype_of(kind):
        return array
    if array.dtype == unsigned_of(kind):
        return array.view(dtype_of(kind))
    return array.astype(dtype_of(kind))


def bits(value: Any) -> Any:
    """Bits as Python integers."""
    array = np.asarray(value)
    if array.dtype.kind != "b":
        array = array.view(f"u{array.itemsize}")
    return array.tolist()


def undefined(text: str, values: list[int], shadows: list[int]) -> Any:
    """The undefined bits of the result, for one thread."""
    found = rule(text)
    assert found.undefined is not None
    pairs = list(zip(found.sources, values, shadows, strict=True))
    arrays = [np.array([v], unsigned_of(kind)).view(dtype_of(kind)) for kind, v, _ in pairs]
    masks = [np.array([s], unsigned_of(kind)) for kind, _, s in pairs]
    with np.errstate(all="ignore"):
        result = found.undefined(*arrays, *masks)
    several = result if isinstance(result, tuple) else (result,)
    for kind, one in zip(found.results, several, strict=True):
        assert one.dtype == unsigned_of(kind), (text, one.dtype)
    numbers = [int(one[0]) for one in several]
    return tuple(numbers) if isinstance(result, tuple) else numbers[0]
