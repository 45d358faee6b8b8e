"""Packed instructions: which operation each does on both halves of its operands."""

from __future__ import annotations

from refcomp.emulator.instructions.operation import PackedSemantics
from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.instructions.tables.integers import VECTOR_INTEGERS

_OF_FLOATS = {
    **{
        f"v_pk_{n}_f16": PackedSemantics("f16", VECTOR_FLOATS[f"v_{n}_f16"])
        for n in ("add", "mul", "min", "max")
    },
    **{
        f"v_pk_{n}_f32": PackedSemantics("f32", VECTOR_FLOATS[f"v_{n}_f32"])
        for n in ("add", "mul", "fma")
    },
    "v_pk_fma_f16": PackedSemantics("f16", VECTOR_FLOATS["v_fma_f16"]),
    "v_pk_fmac_f16": PackedSemantics("f16", VECTOR_FLOATS["v_fmac_f16"]),
}
_OF_INTEGERS = {
    **{
        f"v_pk_{name}_{kind}": PackedSemantics(
            kind, VECTOR_INTEGERS[f"v_{name}_{kind}"]
        )
        for kind in ("u16", "i16")
        for name in ("add", "sub", "min", "max", "mad")
    },
    "v_pk_mul_lo_u16": PackedSemantics("u16", VECTOR_INTEGERS["v_mul_lo_u16"]),
    "v_pk_lshlrev_b16": PackedSemantics("u16", VECTOR_INTEGERS["v_lshlrev_b16"]),
    "v_pk_lshrrev_b16": PackedSemantics("u16", VECTOR_INTEGERS["v_lshrrev_b16"]),
    "v_pk_ashrrev_i16": PackedSemantics("i16", VECTOR_INTEGERS["v_ashrrev_i16"]),
}

# By mnemonic.
PACKED: dict[str, PackedSemantics] = {**_OF_FLOATS, **_OF_INTEGERS}
