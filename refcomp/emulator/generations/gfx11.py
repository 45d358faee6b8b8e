"""RDNA3: its names for instructions that CDNA also has, and the instructions that only it has.

`RENAMED` maps RDNA3's names to those of other GPUs: `global_load_b32` is bound as
`global_load_dword`. Each result of 16 bits leaves the other half of its register unchanged.

Names and meanings: AMD's "RDNA3 Instruction Set Architecture", chapter on instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import TypeVar

import numpy as np

from refcomp.emulator.code.assembly import NAMED, Instruction, RegisterRange
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions import spreads
from refcomp.emulator.instructions.exact import fma_f16
from refcomp.emulator.instructions.matrix.wmma import WAVE_MATRIX, bind_wave_matrix
from refcomp.emulator.instructions.memory.atomics import bind_atomic
from refcomp.emulator.instructions.operation import Function, Semantics, operation
from refcomp.emulator.instructions.tables.conversions import (
    VECTOR_CONVERSIONS,
    pack,
    to_integer,
)
from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.instructions.vector.comparisons import bind_compare_exec
from refcomp.emulator.instructions.vector.cross_lane import bind_bpermute, bind_permute
from refcomp.emulator.instructions.vector.permlane import bind_permlane, bind_permlane64
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.waves import Run, Waves

_Row = TypeVar("_Row")


# `null` reads as 0, and nothing reads what is written to it. (Its number and that of M0 differ from
# CDNA, but only in encodings.)
NAMED_REGISTERS = {**NAMED, "null": RegisterRange(122, 1)}
IDLE = frozenset(
    {
        "s_delay_alu",
        "s_waitcnt_depctr",
        "s_waitcnt_vscnt",
        "s_set_inst_prefetch_distance",
        "s_waitcnt_vmcnt",
        "s_waitcnt_expcnt",
        "s_waitcnt_lgkmcnt",
        "s_wait_idle",
        "s_wait_event",
        "s_version",
        "buffer_gl0_inv",
        "buffer_gl1_inv",
    }
)

# Names.

_WORDS = {"b32": "dword", "b64": "dwordx2", "b96": "dwordx3", "b128": "dwordx4"}
_LOADED = {"u8": "ubyte", "i8": "sbyte", "u16": "ushort", "i16": "sshort"}
_HALVES = {"u8": "ubyte", "i8": "sbyte", "b16": "short"}
_STORED = {"b8": "byte", "b16": "short"}
_UPDATES = {
    **{f"{name}_u32": name for name in ("add", "sub", "inc", "dec")},
    **{f"{name}_b32": name for name in ("and", "or", "xor", "swap", "cmpswap")},
    **{
        f"{name}_{sign}32": f"{kind}{name}"
        for name in ("min", "max")
        for sign, kind in ("is", "uu")
    },
}
_SCALAR_WORDS = {32: "", 64: "x2", 128: "x4", 256: "x8", 512: "x16"}


def _accesses() -> Iterator[tuple[str, str]]:
    for space in ("global", "flat", "scratch", "buffer"):
        for new, old in (_WORDS | _LOADED).items():
            yield f"{space}_load_{new}", f"{space}_load_{old}"
        for new, old in (_WORDS | _STORED).items():
            yield f"{space}_store_{new}", f"{space}_store_{old}"
        for (new, old), half in product(_HALVES.items(), ("", "_hi")):
            yield f"{space}_load_d16{half}_{new}", f"{space}_load_{old}_d16{half}"
        for new, old in _STORED.items():
            yield f"{space}_store_d16_hi_{new}", f"{space}_store_{old}_d16_hi"
    for space, (new, old) in product(("global", "flat", "buffer"), _UPDATES.items()):
        yield f"{space}_atomic_{new}", f"{space}_atomic_{old}"
        wide = new.replace("32", "64")
        yield f"{space}_atomic_{wide}", f"{space}_atomic_{old}_x2"
    for bits, count in _SCALAR_WORDS.items():
        for space in ("s_load", "s_buffer_load"):
            yield f"{space}_b{bits}", f"{space}_dword{count}"


def _shared_accesses() -> Iterator[tuple[str, str]]:
    for new, old in (("load", "read"), ("store", "write")):
        for bits in (32, 64, 96, 128):
            yield f"ds_{new}_b{bits}", f"ds_{old}_b{bits}"
        for bits in (32, 64):
            yield f"ds_{new}_2addr_b{bits}", f"ds_{old}2_b{bits}"
            yield f"ds_{new}_2addr_stride64_b{bits}", f"ds_{old}2st64_b{bits}"
    for kind in ("u8", "i8", "u16", "i16"):
        yield f"ds_load_{kind}", f"ds_read_{kind}"
    for kind, half in product(("u8", "i8", "u16"), ("", "_hi")):
        yield f"ds_load_{kind}_d16{half}", f"ds_read_{kind}_d16{half}"
    for bits, half in product((8, 16), ("", "_d16_hi")):
        yield f"ds_store_b{bits}{half}", f"ds_write_b{bits}{half}"
    for bits in (32, 64):
        yield f"ds_storexchg_rtn_b{bits}", f"ds_wrxchg_rtn_b{bits}"


def _names_of_sums() -> Iterator[tuple[str, str]]:
    for name, kind in product(("add", "sub", "subrev"), ("u32", "i32", "u16", "i16")):
        yield f"v_{name}_nc_{kind}", f"v_{name}_{kind}"
    for new, old in (("add", "addc"), ("sub", "subb"), ("subrev", "subbrev")):
        yield f"v_{new}_co_ci_u32", f"v_{old}_co_u32"


def _scalar_logic() -> Iterator[tuple[str, str]]:
    for bits in (32, 64):
        for name in ("and", "or"):
            yield f"s_{name}_not1_b{bits}", f"s_{name}n2_b{bits}"
            for number, old in ((0, 1), (1, 2)):
                new = f"s_{name}_not{number}_saveexec_b{bits}"
                yield new, f"s_{name}n{old}_saveexec_b{bits}"


_DUAL = (
    "fmac_f32",
    "fmaak_f32",
    "fmamk_f32",
    "mul_f32",
    "add_f32",
    "sub_f32",
    "subrev_f32",
    "mov_b32",
    "cndmask_b32",
    "max_f32",
    "min_f32",
    "and_b32",
    "lshlrev_b32",
)
RENAMED: dict[str, str] = {
    **dict([*_accesses(), *_shared_accesses(), *_names_of_sums(), *_scalar_logic()]),
    **{f"v_dual_{name}": f"v_{name}" for name in _DUAL},
    **{f"v_{d}dot2acc_f32_f16": "v_dot2c_f32_f16" for d in ("", "dual_")},
    "v_dual_dot2acc_f32_bf16": "v_dot2c_f32_bf16",
    "v_dual_add_nc_u32": "v_add_u32",
    "v_dual_mul_dx9_zero_f32": "v_mul_legacy_f32",
    "v_clz_i32_u32": "v_ffbh_u32",
    "v_cls_i32": "v_ffbh_i32",
    "v_ctz_i32_b32": "v_ffbl_b32",
    "v_mul_dx9_zero_f32": "v_mul_legacy_f32",
    "v_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32",
    "v_cvt_floor_i32_f32": "v_cvt_flr_i32_f32",
    "v_cvt_nearest_i32_f32": "v_cvt_rpi_i32_f32",
    **{f"v_cvt_pk_norm_{k}16_f32": f"v_cvt_pknorm_{k}16_f32" for k in "iu"},
    **{f"s_clz_i32_u{bits}": f"s_flbit_i32_b{bits}" for bits in (32, 64)},
    "s_cls_i32": "s_flbit_i32",
    "s_cls_i32_i64": "s_flbit_i32_i64",
    **{f"s_ctz_i32_b{bits}": f"s_ff1_i32_b{bits}" for bits in (32, 64)},
}


# Rows.


def vector_rows(shared: Mapping[str, Semantics]) -> dict[str, Semantics]:
    """Return the rows that GPUs share, as RDNA3 has them, and its own rows."""
    rows = {**shared, **_own_rows()}
    return {
        name: replace(row, keeps_high=True)
        if row.results[0] in ("f16", "u16", "i16")
        else row
        for name, row in rows.items()
    }


def _xor_all(a: Array, b: Array, c: Array) -> Array:
    return a ^ b ^ c


def _own_rows() -> dict[str, Semantics]:
    rows = {
        "v_xor3_b32": operation(
            "u32 = u32 u32 u32", _xor_all, spread=lambda s, t, r, *values: s | t | r
        ),
        "v_fmamk_f16": operation("f16 = f16 f16 f16", fma_f16),
        "v_fmaak_f16": operation("f16 = f16 f16 f16", fma_f16),
        "v_cndmask_b16": operation(
            "u16 = u16 u16 mask", lambda a, b, c: np.where(c, b, a)
        ),
        "v_cvt_i32_i16": operation(
            "i32 = i16", lambda a: np.asarray(a).astype(np.int32)
        ),
        "v_cvt_u32_u16": operation(
            "u32 = u16", lambda a: np.asarray(a).astype(np.uint32)
        ),
        "v_cvt_pk_i16_f32": operation("u32 = f32 f32", _packed_integers("i16")),
        "v_cvt_pk_u16_f32": operation("u32 = f32 f32", _packed_integers("u16")),
    }
    logic = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for name, function in logic.items():
        rows[f"v_{name}_b16"] = operation("u16 = u16 u16", function)
    rows["v_not_b16"] = operation("u16 = u16", np.invert)
    rows["v_mov_b16"] = operation("u16 = u16", np.copy, spread=spreads.of_copy)
    return rows | dict(_extremes())


def _extremes() -> Iterator[tuple[str, Semantics]]:
    """Yield minima of maxima and maxima of minima, such as max(min(a, b), c)."""
    of_integers: dict[str, Function] = {"min": np.minimum, "max": np.maximum}
    for kind in ("f32", "f16", "i32", "u32"):
        of_floats = {
            name: VECTOR_FLOATS[f"v_{name}_f32"].function for name in of_integers
        }
        chosen = of_floats if kind[0] == "f" else of_integers
        signature = f"{kind} = {kind} {kind} {kind}"
        for inner, outer in (("min", "max"), ("max", "min")):
            function = _nested(chosen[outer], chosen[inner])
            yield f"v_{inner}{outer}_{kind}", operation(signature, function)


def _nested(outer: Function, inner: Function) -> Function:
    return lambda a, b, c: outer(inner(a, b), c)


def _packed_integers(kind: str) -> Function:
    return lambda a, b: pack(to_integer(a, kind), to_integer(b, kind))


SCALAR_ROWS: dict[str, Semantics] = {
    "s_pack_hl_b32_b16": operation(
        "u32 = u32 u32", lambda a, b: (a >> np.uint32(16)) | (b << np.uint32(16))
    ),
}


def in_both_widths(rows: Mapping[str, _Row]) -> dict[str, _Row]:
    """Return the rows for pairs of scalar registers, and the same for single ones."""
    return {
        name.replace("_b64", f"_b{bits}"): row
        for name, row in rows.items()
        for bits in (32, 64)
    }


# Instructions that no row can describe.


def _bind_exchange_if(instruction: Instruction) -> Run:
    """Bind ds_cmpstore_b32, whose last operand is the comparand; elsewhere the first is."""
    *head, new, compared = instruction.operands
    name = instruction.mnemonic.replace("cmpstore", "cmpst")
    run = bind_atomic(
        replace(instruction, mnemonic=name, operands=(*head, compared, new))
    )
    assert run is not None
    return run


def _bind_message(instruction: Instruction) -> Run:
    """Bind s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_DOORBELL).

    Compilers ask for the doorbell before a trap; nothing depends on the answer, which is 0.
    """
    if "MSG_RTN_GET_DOORBELL" not in instruction.text:
        raise not_emulated("this message of s_sendmsg_rtn_b32", instruction)
    result = instruction.operands[0].index

    def run(waves: Waves) -> None:
        waves.write_scalar(result, "u32", np.zeros(waves.count(), np.uint32))
        waves.define((result,))

    return run


SPECIAL: dict[str, Callable[[Instruction], Run]] = {
    **{
        name.replace("v_cmp_", "v_cmpx_"): bind_compare_exec
        for name in (*VECTOR_CONVERSIONS, *VECTOR_FLOATS)
        if name.startswith("v_cmp_")
    },
    **dict.fromkeys(("v_permlane16_b32", "v_permlanex16_b32"), bind_permlane),
    "v_permlane64_b32": bind_permlane64,
    "s_sendmsg_rtn_b32": _bind_message,
    "ds_bpermute_b32": lambda instruction: bind_bpermute(instruction, reach=32),
    "ds_permute_b32": lambda instruction: bind_permute(instruction, reach=32),
    **{
        f"ds_cmpstore{r}_b{n}": _bind_exchange_if
        for r in ("", "_rtn")
        for n in (32, 64)
    },
    **dict.fromkeys(WAVE_MATRIX, bind_wave_matrix),
}
