"""Operands as something to read: registers, constants, modifiers, parts of registers."""

import numpy as np
import pytest

from refcomp.emulator.code.assembly import read_operand
from refcomp.emulator.machine.sources import constant, half_source, scalar_source, vector_source
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import get, make_waves, run, set_scalar


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.0", "f32", 1.0),
        ("1.0", "u32", 0x3F800000),
        ("-4.0", "f64", -4.0),
        ("0.5", "f16", 0.5),
        ("0.15915494", "f64", 0.5 / np.pi),
        ("-1", "u32", 0xFFFFFFFF),
        ("-1", "u64", 0xFFFFFFFFFFFFFFFF),
        ("64", "i16", 64),
        ("0x3ff00000", "f64", 1.0),
        ("0xffffffff", "u64", 0xFFFFFFFF),
        ("0x3c00", "f16", 1.0),
        ("lit(0x3f800000)", "f32", 1.0),
        ("lit(0x3ff00000)", "f64", 1.0),
        ("lit64(0x3ff0000000000000)", "f64", 1.0),
        ("1", "f32", np.float32(1e-45)),
    ],
)
def test_constants(text, kind, value):
    assert constant(text, kind) == value


def test_the_condition_code_is_a_number_of_each_wave():
    waves = make_waves(2)
    waves.values.scc[:] = [False, True]
    waves.shadow.scc[:] = False
    operand = read_operand("src_scc")
    assert scalar_source(operand, "u32").value(waves).tolist() == [0, 1]
    for kind, one in (("u32", 1), ("u64", 1), ("f32", np.float32(1e-45))):
        assert vector_source(operand, kind, {}, 0).value(waves).tolist() == [[0], [one]]
    run(waves, "v_lshl_add_u32 v0, 5, src_scc, 1")
    assert [get(waves, 0, wave=n)[0] for n in (0, 1)] == [6, 11]


def test_the_last_register_is_no_pair():
    with pytest.raises(Unsupported, match="no register follows exec_hi"):
        vector_source(read_operand("exec_hi"), "u64", {}, 0)


def test_an_unknown_operand_is_refused():
    with pytest.raises(Unsupported, match="does not support the operand 'src_lds_direct'"):
        constant("src_lds_direct", "u32")


def _read(waves, text, kind, position=0, **modifiers):
    source = vector_source(read_operand(text), kind, modifiers, position)
    return np.broadcast_to(source.value(waves), (1, 64))[0, 0]


def test_modifiers_of_floats_and_of_bits():
    waves = make_waves(v1=np.float32(-2.5))
    assert _read(waves, "-v1", "f32") == 2.5 and _read(waves, "-|v1|", "f32") == -2.5
    assert _read(waves, "|v1|", "u32") == np.float32(2.5).view(np.uint32)
    assert _read(waves, "-v1", "u32") == np.float32(2.5).view(np.uint32)


def test_parts_of_a_register():
    waves = make_waves(v1=np.uint32(0xFE84C200))
    assert _read(waves, "v1", "u32", src0_sel="BYTE_2") == 0x84
    assert _read(waves, "sext(v1)", "u32", src0_sel="BYTE_3") == 0xFFFFFFFE
    assert _read(waves, "v1", "f16", src0_sel="WORD_0") == np.float16(-3.0)
    assert _read(waves, "v1", "u16", 1, op_sel="[0,1,0]") == 0xFE84
    assert _read(waves, "v1", "u16", 0, op_sel="[0,1,0]") == 0xC200


def test_halves_of_packed_operands():
    waves = make_waves(v2=np.uint32(0x40003C00), v3=np.float32(5.0))
    operand = read_operand("v2")
    values = [half_source(operand, "f16", h, h == 1).value(waves)[0, 0] for h in (0, 1)]
    assert values == [1.0, -2.0]
    wide = read_operand("v[2:3]")
    assert half_source(wide, "f32", 1, False).value(waves)[0, 0] == 5.0
    assert half_source(read_operand("-1"), "i16", 1, False).value(waves) == -1
    assert half_source(read_operand("1.0"), "f16", 1, False).value(waves) == 0


def test_scalars_and_masks():
    waves = make_waves()
    set_scalar(waves, 4, (1 << 40) + 3, 2)
    assert scalar_source(read_operand("s[4:5]"), "u64").value(waves).tolist() == [(1 << 40) + 3]
    mask = vector_source(read_operand("s[4:5]"), "mask64", {}, 0).value(waves)
    assert np.flatnonzero(mask[0]).tolist() == [0, 1, 40]
    assert vector_source(read_operand("s4"), "u32", {}, 0).value(waves).shape == (1, 1)
    assert vector_source(read_operand("0"), "mask64", {}, 0).value(waves) == np.bool_(False)
