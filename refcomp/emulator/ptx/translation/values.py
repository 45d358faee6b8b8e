"""Instructions on values as LLVM IR: the rows of the table, and the effects of modifiers."""

from __future__ import annotations

from collections.abc import Callable

from refcomp.emulator.ptx.instructions.rules import rule_of
from refcomp.emulator.ptx.instructions.types import CARRY, bits_of
from refcomp.emulator.ptx.text.module import (
    Immediate,
    Operand,
    Pair,
    PtxInstruction,
    Register,
    SymbolAddress,
    Vector,
)
from refcomp.emulator.ptx.translation.conversions import (
    FLOATS,
    flushed,
    holes_of,
    print_conversion,
)
from refcomp.emulator.ptx.translation.emitter import ThreadText, mangled, type_of
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.emulator.ptx.translation.texts import rows

# Floating-point instructions whose f32 NaN has the bits that GPUs return.
_ARITHMETIC = frozenset(
    {"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp", "rsqrt", "ex2", "lg2"}
    | {"sin", "cos", "tanh", "min", "max"}
)
_SIGNS = frozenset({"neg", "abs", "copysign"})
_DIRECTIONS = ("rm", "rp", "rz")
# Modifiers that select a row, in the order of its name.
_SELECTORS = (
    "lo",
    "hi",
    "wide",
    "l",
    "r",
    "wrap",
    "clamp",
    "approx",
    "full",
    "shiftamt",
    *_DIRECTIONS,
)
_WIDTHS = ("8", "16", "32", "64")
# Opcodes whose row is that of the first source, and opcodes that name its type in the text.
_OF_FIRST = ("selp", "shl", "shr")
_OF_TEXT = ("mad", "bfe", "bfi", "shf", "prmt", "lop3", "popc", "clz")


def is_arithmetic(instruction: PtxInstruction) -> bool:
    """Return True for arithmetic of f32, whose NaN does not have the bits of an operand."""
    return (
        instruction.opcode in _ARITHMETIC
        and instruction.modifiers[-1:] == ("f32",)
        and bool(instruction.operands)
    )


def takes_any_nan(instruction: PtxInstruction) -> bool:
    """Return True for an instruction to which the bits of an f32 NaN do not matter."""
    return is_arithmetic(instruction) or (
        instruction.opcode == "setp" and instruction.modifiers[-1] == "f32"
    )


def flat(operand: Operand | None) -> list[Operand]:
    """Return the parts of a vector or of a pair. Another operand is its only part."""
    if operand is None:
        return []
    if isinstance(operand, Vector):
        return [one for part in operand.parts for one in flat(part)]
    if isinstance(operand, Pair):
        return [operand.first, operand.second]
    return [operand]


def print_value(text: ThreadText, instruction: PtxInstruction) -> None:
    """Print an instruction on values. Raises NotTranslated if the table lacks it."""
    if instruction.opcode == "mov" and _print_move(text, instruction):
        return
    rule = rule_of(instruction)
    if CARRY in rule.sources or CARRY in rule.results:
        raise NotTranslated(instruction)
    operands = [one for operand in instruction.operands for one in flat(operand)]
    results = operands[: len(rule.results)]
    raw = takes_any_nan(instruction)
    sources = [
        text.operand(instruction, one, kind, raw=raw)
        for one, kind in zip(operands[len(results) :], rule.sources, strict=True)
    ]
    printer = _SPECIAL.get(instruction.opcode, _print_row)
    values = printer(text, instruction, rule.sources, sources)
    if len(values) < len(results):
        raise NotTranslated(instruction)
    for one, kind, value in zip(results, rule.results, values, strict=False):
        text.result(instruction, one, kind, value)


# (text, instruction, types of sources, sources) -> results
_Print = Callable[[ThreadText, PtxInstruction, tuple[str, ...], list[str]], list[str]]


def _print_row(
    text: ThreadText,
    instruction: PtxInstruction,
    kinds: tuple[str, ...],
    sources: list[str],
) -> list[str]:
    modifiers, opcode = instruction.modifiers, instruction.opcode
    if opcode == "dp4a":
        return [text.row(_row(instruction, [".".join(modifiers)]), sources)]
    kind = kinds[0] if opcode in _OF_FIRST else kinds[-1]
    kind = modifiers[-1] if opcode in _OF_TEXT else kind
    if not {*_SELECTORS, "rn", "ftz", "sat", *kinds, kind}.issuperset(modifiers):
        raise NotTranslated(instruction)
    if kind in ("f16", "f16x2"):
        return [_print_halves(text, instruction, kind, sources)]
    if kind != "pred" and (kind[0] not in "usbf" or kind[1:] not in _WIDTHS):
        raise NotTranslated(instruction)
    if "sat" in modifiers and kind != "f32":
        raise NotTranslated(instruction)
    chosen = [one for one in _SELECTORS if one in modifiers]
    if kind in FLOATS and opcode in _ARITHMETIC:
        chosen = [one for one in chosen if one in ("approx", "full", *_DIRECTIONS)]
    stem = "".join(f"{one}." for one in chosen)
    letter = "u" if kind[0] == "b" else kind[0]
    row = _row(instruction, [f"{stem}{kind}", f"{stem}{letter}", f"{stem}i"])
    if kind in FLOATS and opcode in _ARITHMETIC | _SIGNS:
        return [_print_float(text, instruction, row, type_of(kind), sources)]
    _guard_quotient(text, instruction, type_of(kind), sources)
    holes = holes_of(type_of(kind)) | {"a_t": type_of(kinds[0])}
    return [text.row(row, sources, **holes)]


def _print_halves(
    text: ThreadText, instruction: PtxInstruction, kind: str, sources: list[str]
) -> str:
    """Print an instruction of f16. For packed operands, print it for each half."""
    opcode = instruction.opcode
    letter = "f16" if opcode in ("add", "sub", "mul", "fma") else "f"
    if opcode not in ("add", "sub", "mul", "fma", "min", "max", "neg", "abs"):
        raise NotTranslated(instruction)
    row = _row(instruction, [letter])
    if kind == "f16":
        return _print_float(text, instruction, row, "half", sources)
    total = "0"
    for step in (0, 16):
        parts = []
        for one in sources:
            moved = text.let(f"lshr i32 {one}, {step}")
            parts.append(
                text.as_type(text.let(f"trunc i32 {moved} to i16"), "i16", "half")
            )
        value = _print_float(text, instruction, row, "half", parts)
        word = text.as_type(value, "half", "i32")
        placed = text.let(f"shl i32 {word}, {step}")
        total = text.let(f"or i32 {total}, {placed}")
    return total


def _row(instruction: PtxInstruction, names: list[str]) -> str:
    table = rows("value")
    for name in names:
        found = table.get(f"{instruction.opcode}.{name}")
        if found is not None:
            text: str = found
            return text
    raise NotTranslated(instruction)


def _guard_quotient(
    text: ThreadText, instruction: PtxInstruction, kind: str, sources: list[str]
) -> None:
    """Bail out at a quotient by 0 if bits are watched, because it is undefined."""
    if instruction.opcode in ("div", "rem") and text.is_watched:
        text.stop_if(text.let(f"icmp eq {kind} {sources[1]}, 0"))


def _print_float(
    text: ThreadText,
    instruction: PtxInstruction,
    row: str,
    kind: str,
    sources: list[str],
) -> str:
    """Print an instruction of floats of a type of LLVM IR, with the effects of its modifiers."""
    name = mangled(kind)
    flushes = "ftz" in instruction.modifiers
    if flushes and name == "f64":
        raise NotTranslated(instruction)
    if flushes:
        sources = [flushed(text, one, kind) for one in sources]
    holes = holes_of(kind)
    first, *more = sources
    if instruction.opcode in ("min", "max") and more:
        # of two or three
        value = first
        for one in more:
            value = text.row(row, [value, one], **holes)
    else:
        value = text.row(row, sources, **holes)
    if instruction.opcode in _SIGNS:
        return value
    if name != "f64" and not (
        name == "f32" and _is_lazy(text, instruction.operands[0])
    ):
        value = text.let(f"call {kind} @plain.{name}({kind} {value})")
    if flushes:
        value = flushed(text, value, kind)
    if "sat" in instruction.modifiers:
        value = text.let(f"call {kind} @saturated.{name}({kind} {value})")
    return value


def _is_lazy(text: ThreadText, operand: Operand | None) -> bool:
    return isinstance(operand, Register) and operand.name in text.lazy


# Comparisons.


def _print_comparison(
    text: ThreadText,
    instruction: PtxInstruction,
    kinds: tuple[str, ...],
    sources: list[str],
) -> list[str]:
    kind = kinds[0]
    names = list(instruction.modifiers)
    letter = "u" if kind[0] == "b" else kind[0]
    if letter not in "usf" or kind[1:] not in _WIDTHS:
        raise NotTranslated(instruction)
    table = rows("compared")[letter]
    predicates = [table[one] for one in names if one in table]
    combine = [one for one in names if one in ("and", "or", "xor")]
    if not predicates or kind == "f16":
        raise NotTranslated(instruction)
    first, second = sources[:2]
    if "ftz" in names:
        first, second = flushed(text, first), flushed(text, second)
    holds = text.let(f"{predicates[0]} {type_of(kind)} {first}, {second}")
    both = [holds, text.let(f"xor i1 {holds}, true")]
    if combine:
        both = [text.let(f"{combine[0]} i1 {one}, {sources[2]}") for one in both]
    return both


def _print_set(
    text: ThreadText,
    instruction: PtxInstruction,
    kinds: tuple[str, ...],
    sources: list[str],
) -> list[str]:
    result = instruction.modifiers[-2]
    holds = _print_comparison(text, instruction, kinds, sources)[0]
    if result in ("u32", "s32"):
        return [text.let(f"sext i1 {holds} to i32")]
    if result == "f32":
        return [text.let(f"uitofp i1 {holds} to float")]
    raise NotTranslated(instruction)


def _print_slct(
    text: ThreadText,
    instruction: PtxInstruction,
    kinds: tuple[str, ...],
    sources: list[str],
) -> list[str]:
    kind = type_of(kinds[0])
    value = sources[2]
    if "ftz" in instruction.modifiers:
        value = flushed(text, value)
    holds = text.let(
        f"fcmp oge float {value}, 0.0"
        if kinds[2] == "f32"
        else f"icmp sge i32 {value}, 0"
    )
    return [text.let(f"select i1 {holds}, {kind} {sources[0]}, {kind} {sources[1]}")]


# Moves.


def _print_move(text: ThreadText, instruction: PtxInstruction) -> bool:
    """Print a move of an address, or of a vector. Return False for any other move."""
    result, source = instruction.operands
    kind = instruction.modifiers[-1]
    if kind == "b128" or {"v2", "v4"}.intersection(instruction.modifiers):
        raise NotTranslated(instruction)
    if isinstance(source, SymbolAddress):
        space = text.names.spaces.get(source.symbol, "global")
        address = text.symbol_address(source.symbol, source.offset, space)
        plain = f"u{bits_of(kind)}"
        text.result(
            instruction, result, plain, text.as_type(address, "i64", type_of(plain))
        )
        return True
    if isinstance(source, Vector):
        width = _part_bits(instruction, source)
        whole = type_of(f"b{bits_of(kind)}")
        total = "0"
        for number, part in enumerate(source.parts):
            value = text.operand(instruction, part, f"b{width}")
            wide = text.as_type(value, f"i{width}", whole)
            moved = text.let(f"shl {whole} {wide}, {width * number}")
            total = text.let(f"or {whole} {total}, {moved}")
        text.result(instruction, result, f"b{bits_of(kind)}", total)
        return True
    if isinstance(result, Vector):
        width = _part_bits(instruction, result)
        whole = type_of(f"b{bits_of(kind)}")
        value = text.operand(instruction, source, f"b{bits_of(kind)}")
        for number, part in enumerate(result.parts):
            moved = text.let(f"lshr {whole} {value}, {width * number}")
            cut = text.as_type(moved, whole, f"i{width}")
            text.result(instruction, part, f"b{width}", cut)
        return True
    if kind == "f32" and _is_lazy(text, result) and isinstance(source, Register):
        value = text.operand(instruction, source, kind, raw=True)
        text.result(instruction, result, kind, value)
        return True
    return False


def _part_bits(instruction: PtxInstruction, vector: Vector) -> int:
    """Return the bits of each part of a vector that a move packs or unpacks."""
    width, rest = divmod(bits_of(instruction.modifiers[-1]), len(vector.parts))
    if rest or width not in (8, 16, 32):
        raise NotTranslated(instruction)
    return width


def keeps_lazy(instruction: PtxInstruction) -> str | None:
    """Return the register that a move of f32 copies; "" for a number; None for anything else."""
    if instruction.opcode != "mov" or instruction.modifiers != ("f32",):
        return None
    if len(instruction.operands) != 2:
        return None
    source = instruction.operands[1]
    if isinstance(source, Register):
        return source.name
    if isinstance(source, Immediate) and source.bits & 0x7F800000 != 0x7F800000:
        return "" if source.type == "f32" else None
    return None


_SPECIAL: dict[str, _Print] = {
    "setp": _print_comparison,
    "set": _print_set,
    "slct": _print_slct,
    "cvt": print_conversion,
}
