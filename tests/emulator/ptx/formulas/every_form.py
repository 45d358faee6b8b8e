"""All forms of instructions on values, and the formula of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from refcomp.foundation.errors import RefcompError
from tests.emulator.ptx.formulas import compared, floats, integers, logic
from tests.emulator.ptx.formulas.compared import FLOAT_NAMES, INTEGER_NAMES, comparison_formula
from tests.emulator.ptx.formulas.converted import conversion_formula
from tests.emulator.ptx.formulas.floats import float_formula
from tests.emulator.ptx.formulas.integers import integer_formula
from tests.emulator.ptx.formulas.logic import logic_formula
from tests.emulator.ptx.formulas.spelled import Formula, spelled
from tests.emulator.ptx.instructions.worded import rule

_TYPES = "u8 u16 u32 u64 s16 s32 s64 b16 b32 b64 f16 bf16 f32 f64 f16x2 bf16x2 u16x2 s16x2 pred"
_CONVERTED = (
    "u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 f64 f16x2 bf16x2 tf32 e4m3x2 e5m2x2 ue8m0x2"
)
_MODES = "-|rn|rz|rm|rp"
_FTZ = "-|ftz"
_WRAPS = "clamp|wrap"
# Opcodes -> the choices of modifiers, and the number of operands.
_FORMS: dict[str, tuple[list[str], int]] = {
    "add sub": ([f"{_MODES}|cc", _FTZ, "-|sat"], 3),
    "mul": ([f"{_MODES}|lo|hi|wide", _FTZ, "-|sat"], 3),
    "addc subc": (["-|cc"], 3),
    "fma": ([_MODES, _FTZ, "-|sat|relu"], 4),
    "mad": ([f"{_MODES}|lo|hi|wide", _FTZ, "-|sat|cc"], 4),
    "madc": (["lo|hi", "-|cc"], 4),
    "min max": ([_FTZ, "-|NaN|xorsign.abs|NaN.xorsign.abs|relu"], 3),
    "abs neg": ([_FTZ], 2),
    "div": ([f"{_MODES}|approx|full", _FTZ], 3),
    "rcp sqrt rsqrt sin cos lg2 ex2 tanh": ([f"{_MODES}|approx", _FTZ], 2),
    "rem copysign and or xor shl shr": (["-"], 3),
    "mul24": (["hi|lo"], 3),
    "mad24": (["hi|lo", "-|sat"], 4),
    "not cnot popc clz brev mov": (["-"], 2),
    "bfind": (["-|shiftamt"], 2),
    "bfe selp sad fns": (["-"], 4),
    "bfi": (["-"], 5),
    "shf": (["l|r", _WRAPS], 4),
    "bmsk szext": ([_WRAPS], 3),
    "testp": (["finite|infinite|number|notanumber|normal|subnormal"], 2),
    "setp": (["|".join(dict.fromkeys((*FLOAT_NAMES, *INTEGER_NAMES))), _FTZ], 3),
}
_OTHERS = [
    "prmt.b32 d, a, b, c",
    *(f"prmt.b32.{mode} d, a, b, c" for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
    "lop3.b32 d, a, b, c, e",
    "lop3.or.b32 d|p, a, b, c, e, q",
    "lop3.and.b32 d|p, a, b, c, e, q",
    *(f"dp4a.{a}32.{b}32 d, a, b, c" for a in "us" for b in "us"),
    *(f"dp2a.{part}.{a}32.{b}32 d, a, b, c" for a in "us" for b in "us" for part in ("lo", "hi")),
    *(f"{name}{nan}.f32 d, a, b, c" for name in ("min", "max") for nan in ("", ".NaN", ".ftz")),
]
_CONVERSIONS = ["-|rn|rz|rm|rp|rna|rni|rzi|rmi|rpi", _FTZ, "-|sat|relu|satfinite|relu.satfinite"]


@cache
def every_form() -> list[str]:
    """The forms that have a rule, each once."""
    return [text for text in dict.fromkeys(_candidates()) if _has_rule(text)]


def formula_of(text: str) -> Formula:
    """The formula of a form such as `add.s32 d, a, b`."""
    form = spelled(text.split()[0])
    if form.opcode == "cvt":
        return conversion_formula(form)
    if form.opcode in compared.OPCODES:
        return comparison_formula(form)
    if form.opcode in logic.OPCODES.split():
        return logic_formula(form)
    if form.type.removesuffix("x2") in floats.FORMATS:
        return float_formula(form)
    assert form.opcode in integers.OPCODES.split(), text
    return integer_formula(form)


def _has_rule(text: str) -> bool:
    try:
        rule(text)
    except RefcompError:
        return False
    return True


def _candidates() -> Iterator[str]:
    for opcodes, (axes, count) in _FORMS.items():
        for opcode, kind in product(opcodes.split(), _TYPES.split()):
            for modifiers in _products(axes):
                yield _text([opcode, *modifiers, kind], count)
    for pair in product(_CONVERTED.split(), repeat=2):
        for modifiers in _products(_CONVERSIONS):
            yield from (_text(["cvt", *modifiers, *pair], count) for count in (2, 3))
    yield from _comparisons()
    yield from _OTHERS


def _comparisons() -> Iterator[str]:
    """Forms with two results, combined with a predicate, or with a result that is no predicate."""
    results = ["u16", "s16", "u32", "s32", "f32", "f16", "bf16", "f16x2", "bf16x2"]
    for kind in _TYPES.split():
        for name in ("ne", "lt", "geu", "hi"):
            for ftz in ("", "ftz"):
                for combine in ("", "and", "or", "xor"):
                    words = [w for w in (name, combine, ftz) if w]
                    count = 4 if combine else 3
                    text = _text(["setp", *words, kind], count)
                    yield from (text, text.replace(" d,", " d|p,"))
                    yield from (_text(["set", *words, r, kind], count) for r in results)
        for words in (["s32"], ["f32"], ["ftz", "f32"]):
            yield _text(["slct", *words[:-1], kind, words[-1]], 4)


def _products(axes: list[str]) -> Iterator[list[str]]:
    for chosen in product(*(axis.split("|") for axis in axes)):
        yield [word for word in chosen if word != "-"]


def _text(parts: list[str], count: int) -> str:
    return f"{'.'.join(parts)} {', '.join('dabce'[:count])}"
