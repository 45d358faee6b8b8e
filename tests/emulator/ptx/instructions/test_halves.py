"""f16 and bf16 on pairs of edge values, against Python's fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.instructions.edges import floats, grid
from tests.emulator.ptx.instructions.exact_floats import BF16, F16, Format, rounded
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined

KINDS = {"f16": F16, "bf16": BF16}


def _value(kind: Format, word: int) -> Fraction:
    value = kind.value(word)
    assert value is not None
    return value


def _expected(exact: Fraction, kind: Format, is_negative: bool) -> int:
    """The bits of a sum or a product. If it is 0 or becomes so, it has a sign."""
    result = rounded(exact, kind, "rn", is_negative)
    if exact != 0 and result & (kind.sign - 1) == 0:
        return kind.sign if exact < 0 else 0
    return result


@pytest.mark.parametrize("name", KINDS)
def test_sums_and_products_are_rounded_once(name: str) -> None:
    kind = KINDS[name]
    axis = [x for x in floats(kind, 12) if kind.value(x) is not None]
    a, b = grid(axis, axis, kind="u2")
    found = {op: bits(run(f"{op}.{name} d, a, b", a, b)) for op in ("add", "sub", "mul")}
    for i, (p, q) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        x, y = _value(kind, p), _value(kind, q)
        both = bool(p & q & kind.sign)
        assert found["add"][i] == _expected(x + y, kind, both)
        assert found["sub"][i] == _expected(x - y, kind, bool(p & ~q & kind.sign))
        assert found["mul"][i] == _expected(x * y, kind, bool((p ^ q) & kind.sign))


@pytest.mark.parametrize("name", KINDS)
def test_fused_multiply_add_is_rounded_once(name: str) -> None:
    kind = KINDS[name]
    axis = [x for x in floats(kind, 12) if kind.value(x) is not None]
    draw = random.Random(3)
    triples = [draw.choices(axis, k=3) for _ in range(1500)]
    columns = np.array(triples, np.uint16).T
    found = bits(run(f"fma.rn.{name} d, a, b, c", *columns))
    for (p, q, r), result in zip(triples, found, strict=True):
        exact = _value(kind, p) * _value(kind, q) + _value(kind, r)
        assert result == _expected(exact, kind, bool((p ^ q) & r & kind.sign))


@pytest.mark.parametrize("name", KINDS)
def test_packed_instruction_works_on_each_half(name: str) -> None:
    kind = KINDS[name]
    a, b = grid(floats(kind, 2), floats(kind, 2), kind="u2")
    first = a.astype(np.uint32) | b.astype(np.uint32) << np.uint32(16)
    second = b.astype(np.uint32) | a.astype(np.uint32) << np.uint32(16)
    for op in ("add", "sub.rn", "mul", "min", "max.NaN"):
        low = np.array(run(f"{op}.{name} d, a, b", a, b)).view(np.uint16).astype(np.uint32)
        high = np.array(run(f"{op}.{name} d, a, b", b, a)).view(np.uint16).astype(np.uint32)
        found = run(f"{op}.{name}x2 d, a, b", first, second)
        assert bits(found) == (low | high << np.uint32(16)).tolist(), op


def test_nan_is_the_one_of_gpus() -> None:
    assert bits(run("add.f16 d, a, b", np.array([0xFE01], np.uint16), [1.0])) == [0x7FFF]
    assert bits(run("mul.bf16 d, a, b", [0x7F80], [0])) == [0x7FFF]
    assert bits(run("max.f16 d, a, b", *[np.array([0xFE01], np.uint16)] * 2)) == [0x7FFF]
    assert bits(run("max.f16 d, a, b", np.array([0xFE01], np.uint16), [1.0])) == [0x3C00]
    assert bits(run("max.NaN.f16 d, a, b", np.array([0xFE01], np.uint16), [1.0])) == [0x7FFF]


def test_ftz_sat_and_relu() -> None:
    tiny = np.array([1, 0x8001], np.uint16)
    one = [1.0, 1.0]
    assert bits(run("mul.f16 d, a, b", tiny, one)) == [1, 0x8001]
    assert bits(run("mul.ftz.f16 d, a, b", tiny, one)) == [0, 0x8000]
    assert bits(run("mul.ftz.f16 d, a, b", np.array([0x0400] * 2, np.uint16), [0.5] * 2)) == [0, 0]
    assert bits(run("abs.ftz.f16 d, a", tiny)) == [0, 0]
    assert run("add.sat.f16 d, a, b", [-3, 3.0], one).tolist() == [0, 1]
    assert run("fma.rn.relu.f16 d, a, b, c", [-3, 3.0], one, one).tolist() == [0, 4]
    assert bits(run("fma.rn.relu.bf16 d, a, b, c", [0xC000], [0x3F80], [0x3F80])) == [0]


def test_signs_are_bits() -> None:
    assert bits(run("neg.f16 d, a", np.array([0xFE01, 0], np.uint16))) == [0x7E01, 0x8000]
    assert bits(run("abs.bf16 d, a", [0xFF81])) == [0x7F81]
    assert bits(run("neg.bf16x2 d, a", [0x00008000])) == [0x80000000]
    assert undefined("neg.f16x2 d, a", [0], [0xFFFF]) == 0xFFFF


def test_extremes() -> None:
    assert run("max.f16 d, a, b", [-0.0], [0.0]).tolist() == [0]
    assert bits(run("min.f16 d, a, b", [-0.0], [0.0])) == [0x8000]
    assert run("min.xorsign.abs.f16 d, a, b", [-2.0], [1.0]).tolist() == [-1]


def test_functions_are_approximated() -> None:
    assert run("ex2.approx.f16 d, a", [3.0]).tolist() == [8]
    assert bits(run("ex2.approx.ftz.bf16x2 d, a", [0x40400000])) == [0x41003F80]
    assert run("tanh.approx.f16 d, a", [np.inf]).tolist() == [1]
    assert bits(run("tanh.approx.bf16 d, a", [0x0001])) == [1]


def test_forms_that_are_not_there_are_refused() -> None:
    for text, message in (
        ("add.rz.f16 d, a, b", "add does not have the modifier .rz with .f16"),
        ("add.relu.f16 d, a, b", "add does not have the modifier .relu with .f16"),
        ("add.ftz.bf16 d, a, b", "add does not have the modifier .ftz with .bf16"),
        ("fma.rn.sat.bf16 d, a, b, c", "fma does not have the modifier .sat with .bf16"),
        ("fma.rn.sat.relu.f16 d, a, b, c", "fma does not have the modifier .relu with .f16"),
        ("fma.f16 d, a, b, c", "fma.f16 needs the rounding .rn"),
        ("ex2.approx.bf16 d, a", "ex2 needs one of .ftz"),
        ("ex2.approx.ftz.f16 d, a", "ex2 does not have the modifier .ftz with .f16"),
    ):
        with pytest.raises(UserError, match=message):
            rule(text)
    with pytest.raises(Unsupported, match="does not support the modifier .oob of fma"):
        rule("fma.rn.oob.f16 d, a, b, c")


def test_each_half_of_a_packed_result_depends_on_its_own_halves():
    for form in ("add.f16x2", "mul.rn.bf16x2", "min.f16x2", "add.u16x2", "max.s16x2"):
        assert undefined(f"{form} d, a, b", [0, 0], [0x10000, 0]) == 0xFFFF0000, form
        assert undefined(f"{form} d, a, b", [0, 0], [0, 1]) == 0xFFFF, form
    assert undefined("fma.rn.f16x2 d, a, b, c", [0, 0, 0], [1, 0, 1 << 31]) == 0xFFFFFFFF
    assert undefined("tanh.approx.f16x2 d, a", [0], [1]) == 0xFFFF
