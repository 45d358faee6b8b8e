"""Conversions as LLVM IR: cvt between integers and floats, and the flushing of denormals."""

from __future__ import annotations

from refcomp.emulator.ptx.instructions.types import bits_of
from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.emulator.ptx.translation.emitter import (
    ThreadText,
    mangled,
    type_of,
    width_of,
)
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.emulator.ptx.translation.texts import rows

FLOATS = ("f32", "f64")
_INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
_ROUNDED_WHOLE = ("rni", "rzi", "rmi", "rpi")


def holes_of(kind: str) -> dict[str, str]:
    """Return the texts for the placeholders of a row, for a type of LLVM IR."""
    width = width_of(kind)
    return {"t": kind, "n": str(width), "w": f"i{2 * width}", "m": mangled(kind)}


def flushed(text: ThreadText, value: str, kind: str = "float") -> str:
    """Print the flushing of a denormal float or half, and return the result."""
    return text.let(f"call {kind} @flush.{mangled(kind)}({kind} {value})")


def print_conversion(
    text: ThreadText,
    instruction: PtxInstruction,
    kinds: tuple[str, ...],
    sources: list[str],
) -> list[str]:
    """Print cvt, and return its result."""
    types = [
        one for one in instruction.modifiers if one in (*_INTEGERS, "f16", *FLOATS)
    ]
    rest = [one for one in instruction.modifiers if one not in types]
    if len(types) == 1 and instruction.modifiers.count(types[0]) == 2:
        types *= 2
    if len(types) != 2 or len(kinds) != 1 or kinds[0] != types[1]:
        raise NotTranslated(instruction)
    result, source = types
    is_from, is_to = source in _INTEGERS, result in _INTEGERS
    if is_from and is_to:
        return [_resized(text, instruction, result, source, sources[0], rest)]
    if is_from:
        return [_to_float(text, instruction, result, source, sources[0], rest)]
    if is_to:
        return [_to_integer(text, instruction, result, source, sources[0], rest)]
    return [_between_floats(text, instruction, result, source, sources[0], rest)]


def _resized(
    text: ThreadText,
    instruction: PtxInstruction,
    result: str,
    source: str,
    value: str,
    rest: list[str],
) -> str:
    given, wanted = type_of(source), type_of(result)
    if rest:
        value = _clamped(text, instruction, result, source, value, rest)
    if width_of(given) > width_of(wanted):
        return text.let(f"trunc {given} {value} to {wanted}")
    if width_of(given) < width_of(wanted):
        verb = "sext" if source[0] == "s" else "zext"
        return text.let(f"{verb} {given} {value} to {wanted}")
    return value


def _clamped(
    text: ThreadText,
    instruction: PtxInstruction,
    result: str,
    source: str,
    value: str,
    rest: list[str],
) -> str:
    """Clamp an integer to the range of the result's type. The type of the value stays."""
    if rest != ["sat"]:
        raise NotTranslated(instruction)
    given, bits, wanted = type_of(source), bits_of(source), bits_of(result)
    most = (1 << (wanted - (result[0] == "s"))) - 1
    least = -(1 << (wanted - 1)) if result[0] == "s" else 0
    if bits < 16:
        raise NotTranslated(instruction)
    if source[0] == "u":
        if most >= (1 << bits) - 1:
            return value
        return text.let(
            f"call {given} @llvm.umin.{given}({given} {value}, {given} {most})"
        )
    if least > -(1 << (bits - 1)):
        value = text.let(
            f"call {given} @llvm.smax.{given}({given} {value}, {given} {least})"
        )
    if most < (1 << (bits - 1)) - 1:
        value = text.let(
            f"call {given} @llvm.smin.{given}({given} {value}, {given} {most})"
        )
    return value


def _to_float(
    text: ThreadText,
    instruction: PtxInstruction,
    result: str,
    source: str,
    value: str,
    rest: list[str],
) -> str:
    if not {"rn", "ftz"}.issuperset(rest) or "rn" not in rest or result == "f16":
        raise NotTranslated(instruction)
    verb = "sitofp" if source[0] == "s" else "uitofp"
    return text.let(f"{verb} {type_of(source)} {value} to {type_of(result)}")


def _to_integer(
    text: ThreadText,
    instruction: PtxInstruction,
    result: str,
    source: str,
    value: str,
    rest: list[str],
) -> str:
    mode = next((one for one in rest if one in _ROUNDED_WHOLE), "")
    others = set(rest) - {mode}
    if not mode or source == "f16" or not {"sat", "ftz"}.issuperset(others):
        raise NotTranslated(instruction)
    if "ftz" in others:
        value = flushed(text, value)
    given, wanted = type_of(source), type_of(result)
    whole = text.row(rows("whole")[mode], [value], **holes_of(given))
    verb = "fptosi" if result[0] == "s" else "fptoui"
    name = f"llvm.{verb}.sat.{wanted}.{mangled(given)}"
    number = text.let(f"call {wanted} @{name}({given} {whole})")
    if 64 not in (bits_of(result), bits_of(source)):
        return number
    is_nan = text.let(f"fcmp uno {given} {whole}, {whole}")
    least = -(1 << (bits_of(result) - 1))
    return text.let(f"select i1 {is_nan}, {wanted} {least}, {wanted} {number}")


def _between_floats(
    text: ThreadText,
    instruction: PtxInstruction,
    result: str,
    source: str,
    value: str,
    rest: list[str],
) -> str:
    whole = [one for one in rest if one in _ROUNDED_WHOLE]
    if not {"rn", "ftz", "sat", *whole}.issuperset(rest):
        raise NotTranslated(instruction)
    if ("sat" in rest and result != "f32") or (whole and result == "f16"):
        raise NotTranslated(instruction)
    flushes = "ftz" in rest
    given, wanted = type_of(source), type_of(result)
    if flushes and source == "f32":
        value = flushed(text, value)
    if whole:
        value = text.row(rows("whole")[whole[0]], [value], **holes_of(given))
    if width_of(given) != width_of(wanted):
        if (source, result) == ("f64", "f16"):
            return text.let(f"call half @half.of(double {value}, double 0.0)")
        verb = "fptrunc" if width_of(given) > width_of(wanted) else "fpext"
        value = text.let(f"{verb} {given} {value} to {wanted}")
    if result != "f64":
        value = text.let(f"call {wanted} @plain.{result}({wanted} {value})")
    if flushes and result == "f32":
        value = flushed(text, value)
    if "sat" in rest:
        value = text.let(f"call float @saturated.f32(float {value})")
    return value
