"""Kernels that run many forms of instructions, each thread on other edges and random numbers."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from refcomp.emulator.ptx.instructions.rules import rule_of
from refcomp.emulator.ptx.instructions.types import CARRY, bits_of
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.translation.emitter import PlacedNames, places_of_parameters
from refcomp.emulator.ptx.translation.printer import print_kernel
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from tests.emulator.ptx.instructions.edges import float_bits, integers
from tests.emulator.ptx.texts import HEADER

THREADS = 64
_FLOATS = ("f16", "bf16", "f32", "f64")
_LETTERS = {1: "p", 8: "h", 16: "h", 32: "r", 64: "d"}


@dataclass(frozen=True)
class Form:
    """An instruction with its types, such as "add.f32 d, a, b"."""

    text: str
    sources: tuple[str, ...]
    results: tuple[str, ...]


def form_of(text: str) -> Form:
    """The form of an instruction whose operands are single letters."""
    function = read_ptx(
        f"{HEADER}.entry k() {{ .reg .b32 a, b, c, d, e; .reg .pred p; {text}; }}"
    ).functions["k"]
    rule = rule_of(function.instructions[0])
    return Form(text, rule.sources, rule.results)


def is_translated(form: Form) -> bool:
    """Whether a kernel with this form can be translated."""
    if CARRY in (*form.sources, *form.results):
        return False
    function = read_ptx(kernel_of([form])).functions["forms"]
    names = PlacedNames({}, {}, {}, 0, places_of_parameters(function))
    try:
        print_kernel(function, names, is_watched=False)
    except NotTranslated:
        return False
    return True


def kernel_of(forms: list[Form]) -> str:
    """A kernel `forms`, which runs each form on numbers of its own and stores the results."""
    lines = []
    for number, form in enumerate(forms):
        opcode, _, operands = form.text.partition(" ")
        names = operands.replace("|", ", ").split(", ")
        results, sources = names[: len(form.results)], names[len(form.results) :]
        told = dict(zip(sources, form.sources, strict=True))
        told |= dict(zip(results, form.results, strict=True))
        own = {name: f"%{_LETTERS[bits_of(kind)]}_{name}" for name, kind in told.items()}
        for place, name in enumerate(sources):
            lines += _loaded(own[name], told[name], 4 * number + place)
        spelled = ", ".join(own[name] for name in names)
        if "|" in operands:
            spelled = spelled.replace(", ", "|", 1)
        lines.append(f"{opcode} {spelled};")
        for place, name in enumerate(results):
            lines += _stored(own[name], told[name], 2 * number + place)
    registers = "".join(
        f".reg .{kind} {', '.join(f'%{letter}_{n}' for n in 'abcdep')};\n"
        for letter, kind in (("p", "pred"), ("h", "b16"), ("r", "b32"), ("d", "b64"))
    )
    body = "\n".join(lines)
    return f"""{HEADER}
.visible .entry forms(.param .u64 inputs, .param .u64 outputs)
{{
{registers}.reg .b32 %t; .reg .b64 %in, %out, %step;
ld.param.u64 %in, [inputs];
ld.param.u64 %out, [outputs];
mov.u32 %t, %tid.x;
mul.wide.u32 %step, %t, 8;
add.u64 %in, %in, %step;
add.u64 %out, %out, %step;
{body}
ret;
}}
"""


def _loaded(register: str, kind: str, row: int) -> list[str]:
    where = f"[%in+{8 * THREADS * row}]"
    if kind == "pred":
        return [f"ld.global.b32 %t, {where};", f"setp.ne.b32 {register}, %t, 0;"]
    return [f"ld.global.b{bits_of(kind)} {register}, {where};"]


def _stored(register: str, kind: str, row: int) -> list[str]:
    where = f"[%out+{8 * THREADS * row}]"
    if kind == "pred":
        return [f"selp.u32 %t, 1, 0, {register};", f"st.global.b32 {where}, %t;"]
    return [f"st.global.b{bits_of(kind)} {where}, {register};"]


def inputs_of(forms: list[Form]) -> np.ndarray:
    """Numbers for all sources: uint64 [row, thread]."""
    found = np.zeros((4 * len(forms), THREADS), np.uint64)
    for number, form in enumerate(forms):
        draw = random.Random(form.text)
        for place, kind in enumerate(form.sources):
            found[4 * number + place] = [draw.choice(_choices(kind)) for _ in range(THREADS)]
    return found


def _choices(kind: str) -> list[int]:
    if kind == "pred":
        return [0, 1]
    part, _, count = kind.partition("x")
    if count:
        half = [bits & 0xFFFF for bits in _choices(part)]
        return [a | b << 16 for a, b in zip(half, reversed(half), strict=True)]
    return float_bits(kind) if kind in _FLOATS else integers(bits_of(kind))
