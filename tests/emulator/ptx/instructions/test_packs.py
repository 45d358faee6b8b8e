"""Pairs of small integers, by the formula of the manual."""

import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.rules import rule_of
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.foundation.errors import UserError
from tests.emulator.ptx.texts import kernel

_EDGES = np.array([-(2**31), -40000, -200, -9, -2, -1, 0, 1, 2, 7, 9, 200, 40000, 2**31 - 1])


def _rule(text):
    function = read_ptx(kernel(f"{text} ret;")).functions["k"]
    return rule_of(function.instructions[2])


def _clamped(value, kind):
    width = int(kind[1:])
    least = -(2 ** (width - 1)) if kind[0] == "s" else 0
    return min(max(value, least), least + 2**width - 1) % 2**width


@pytest.mark.parametrize("kind", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
def test_two_integers_are_packed(kind):
    a, b = (v.reshape(-1).astype(np.int32) for v in np.meshgrid(_EDGES, _EDGES))
    rest = np.arange(len(a), dtype=np.uint32) * np.uint32(0x9E3779B9)
    width = int(kind[1:])
    given = [a, b] if width == 16 else [a, b, rest]
    tail = ".b32 %r1, %r2, %r3, %r4;" if width < 16 else " %r1, %r2, %r3;"
    found = _rule(f"cvt.pack.sat.{kind}.s32{tail}").compute(*given)
    for i, (p, q) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        wanted = _clamped(p, kind) << width | _clamped(q, kind)
        if width < 16:
            wanted |= int(rest[i]) << 2 * width
        assert found[i] == wanted % 2**32


def test_forms_that_do_not_exist_are_refused():
    with pytest.raises(UserError, match=r"cvt.pack needs \.u16\.s32"):
        _rule("cvt.pack.sat.u8.s32 %r1, %r2, %r3;")
    with pytest.raises(UserError, match=r"cvt.pack needs \.u16\.s32"):
        _rule("cvt.pack.sat.u16.s32.b32 %r1, %r2, %r3, %r4;")
