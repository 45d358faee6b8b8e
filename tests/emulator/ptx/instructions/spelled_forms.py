"""Forms of instructions: all opcodes with all types and many modifiers, legal or not."""

from __future__ import annotations

from collections.abc import Iterator

from refcomp.foundation.errors import RefcompError
from tests.emulator.ptx.instructions.worded import rule

_TYPES = "u8 u16 u32 u64 s16 s32 s64 b16 b32 b64 f16 bf16 f32 f64 f16x2 bf16x2 u16x2 s16x2 pred"
_CONVERTED = "u8 s8 u16 s32 u64 f16 bf16 f32 f64 f16x2 bf16x2 tf32 e4m3x2 e5m2x2 ue8m0x2"
_SUMS = " rn rz ftz sat relu rn.ftz rn.sat ftz.sat rm.ftz.sat"
_FUSED = " rn rz rn.ftz rn.sat rn.relu rn.ftz.sat rn.sat.relu"
_EXTREMES = " ftz NaN xorsign.abs ftz.NaN relu"
_FUNCTIONS = " approx approx.ftz rn rn.ftz rp rn.sat"
_COMPARED = " eq lt lo ltu num lt.ftz lt.and eq.xor.ftz"
_CONVERSIONS = (
    " rn rz rna rni rzi sat ftz rn.ftz rzi.ftz rzi.sat rn.sat rn.relu rn.satfinite"
    " rn.relu.satfinite rni.ftz.sat ftz.sat rna.satfinite rz.relu rp rp.satfinite"
)
# Opcodes -> modifiers, of which one is used at a time; number of operands.
_FORMS: dict[str, tuple[str, int]] = {
    "add sub": (f"{_SUMS} cc", 3),
    "mul": (f"{_SUMS} lo hi wide", 3),
    "addc subc": (" cc", 3),
    "fma": (_FUSED, 4),
    "mad": (" rn rn.ftz rz.sat lo hi wide hi.sat lo.sat lo.cc hi.cc", 4),
    "madc": (" lo hi lo.cc hi.cc", 4),
    "min max": (_EXTREMES, 3),
    "abs neg": (" ftz sat", 2),
    "div": (" approx full rn rz.ftz approx.ftz full.ftz rn.sat", 3),
    "rcp sqrt rsqrt sin cos lg2 ex2 tanh": (_FUNCTIONS, 2),
    "rem copysign and or xor shl shr": (" ftz", 3),
    "mul24": (" lo hi", 3),
    "mad24": (" lo hi hi.sat", 4),
    "not cnot popc clz brev mov": (" ftz", 2),
    "bfind": (" shiftamt", 2),
    "bfe selp sad fns": (" ftz", 4),
    "shf": (" l.clamp r.wrap", 4),
    "bmsk szext": (" clamp wrap", 3),
    "bfi": ("", 5),
    "testp": (" finite normal", 2),
}


def accepted_forms() -> list[str]:
    """The forms that have a rule, without repetition."""
    return [text for text in dict.fromkeys(_all_forms()) if _has_rule(text)]


def _has_rule(text: str) -> bool:
    try:
        rule(text)
    except RefcompError:
        return False
    return True


def _all_forms() -> Iterator[str]:
    for opcodes, (modifiers, count) in _FORMS.items():
        for opcode in opcodes.split():
            for kind in _TYPES.split():
                for modifier in modifiers.split(" "):
                    yield _text(opcode, modifier, kind, count)
    for result in _CONVERTED.split():
        for source in _CONVERTED.split():
            for modifier in _CONVERSIONS.split(" "):
                for count in (2, 3):
                    yield _text("cvt", modifier, f"{result}.{source}", count)
    for kind in _TYPES.split():
        for modifier in _COMPARED.split(" "):
            count = 4 if "and" in modifier or "xor" in modifier else 3
            yield _text("setp", modifier, kind, count)
            yield _text("setp", modifier, kind, count).replace(" d,", " d|p,")
            for result in ("u32", "s16", "f32", "f16", "bf16", "f16x2", "bf16x2"):
                yield _text("set", modifier, f"{result}.{kind}", count)
        for decider in ("s32", "f32", "ftz.f32"):
            modifier, _, last = decider.rpartition(".")
            yield _text("slct", modifier, f"{kind}.{last}", 4)


def _text(opcode: str, modifier: str, kinds: str, count: int) -> str:
    name = ".".join(filter(None, (opcode, modifier, kinds)))
    return f"{name} {', '.join('dabce'[:count])}"
