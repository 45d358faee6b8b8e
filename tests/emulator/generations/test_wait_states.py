"""Which instructions must stand apart, as the manuals and LLVM have it."""

import pytest

from refcomp.emulator.generations.generation import ARCHITECTURES, GENERATIONS
from refcomp.emulator.generations.wait_counters import register_name
from refcomp.emulator.generations.wait_states import GFX11_STATES, GFX90A_STATES, GFX942_STATES
from refcomp.emulator.instructions.matrix.layouts import product_of
from tests.emulator.snippets import instruction


def _names(places):
    return " ".join(p if isinstance(p, str) else register_name(p) for p in sorted(places, key=str))


def _uses(uses):
    return {name: _names(places) for name, places in uses}


def _footprint(line, table=GFX942_STATES):
    return table.footprint(instruction(line))


@pytest.mark.parametrize(
    ("line", "leaves"),
    [
        ("v_readfirstlane_b32 s4, v1", {"VALU writes SGPR": "s4"}),
        ("v_cmp_lt_f32_e32 vcc, v0, v1", {"VALU writes SGPR": "vcc_lo vcc_hi"}),
        ("v_cmpx_lt_f32_e64 s[2:3], v0, v1", {"VALU writes SGPR": "exec_lo exec_hi s2 s3"}),
        (
            "v_add_co_u32_e32 v0, vcc, v1, v2",
            {"VALU writes VGPR": "v0", "VALU writes SGPR": "vcc_lo vcc_hi"},
        ),
        ("v_exp_f32_e32 v0, v1", {"VALU writes VGPR": "v0", "trans writes VGPR": "v0"}),
        (
            "v_add_f16_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD",
            {"VALU writes VGPR": "v0", "VALU writes half a VGPR": "v0"},
        ),
        ("v_mul_u32_u24_sdwa v0, v1, v2 dst_sel:DWORD", {"VALU writes VGPR": "v0"}),
        (
            "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]",
            {"VALU writes VGPR": "v0", "VALU writes half a VGPR": "v0"},
        ),
        ("v_pk_add_f16 v0, v1, v2 op_sel:[0,1]", {"VALU writes VGPR": "v0"}),
        ("v_dot2_f32_f16 v0, v1, v2, v3", {"dot writes VGPR": "v0"}),
        (
            "v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[4:7]",
            {"2-pass SMFMA writes VGPR": "a0 a1 a2 a3"},
        ),
        (
            "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[8:11]",
            {"4-pass XDL writes VGPR": "v0 v1 v2 v3", "4-pass XDL reads SrcC": "v8 v9 v10 v11"},
        ),
        (
            "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[4:5], 0",
            {"4x4 DGEMM writes VGPR": "v0 v1", "DGEMM runs": "the unit of f64"},
        ),
        ("global_store_dwordx4 v0, v[2:5], s[0:1]", {"wide store reads VGPR": "v2 v3 v4 v5"}),
        ("scratch_store_dwordx3 off, v[2:4], s32", {"wide store reads VGPR": "v2 v3 v4"}),
        ("global_store_dwordx2 v0, v[2:3], s[0:1]", {}),
        ("buffer_store_dwordx3 v[2:4], v0, s[0:3], 0 offen", {"wide store reads VGPR": "v2 v3 v4"}),
        ("buffer_store_dwordx3 v[2:4], v0, s[0:3], s5 offen", {}),
        ("s_mov_b32 m0, s4", {"SALU writes M0": "s124"}),
        ("s_cmp_eq_u32 m0, s4", {}),
        ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s4", {"s_setreg writes": "HW_REG_MODE"}),
        ("s_barrier", {}),
        ("v_nop", {}),
    ],
)
def test_what_instructions_leave(line, leaves):
    assert _uses(_footprint(line).as_first) == leaves


@pytest.mark.parametrize(
    ("line", "does"),
    [
        (
            "global_load_dword v4, v1, s[2:3] offset:8",
            {
                **{"memory reads VGPR": "v1", "memory writes VGPR": "v4"},
                **{"VMEM reads SGPR": "s2 s3"},
            },
        ),
        ("ds_write_b32 v1, v2", {"memory reads VGPR": "v1 v2"}),
        (
            "global_load_lds_dword v1, s[2:3] offset:8",
            {
                **{"memory reads VGPR": "v1", "VMEM reads SGPR": "s2 s3"},
                **{"s_movrel, s_sendmsg or a load to LDS reads M0": "s124"},
            },
        ),
        (
            "global_atomic_add v4, v1, v2, s[2:3] sc0",
            {"memory reads VGPR": "v1 v2 v4", "VMEM reads SGPR": "s2 s3"},
        ),
        (
            "v_fmac_f32_e32 v0, s1, v2",
            {
                **{"VALU writes VGPR": "v0", "VALU reads VGPR": "v0 v2"},
                **{"VALU reads SGPR": "s1"},
            },
        ),
        ("v_exp_f32_e32 v0, v1", {"VALU writes VGPR": "v0", "trans reads VGPR": "v1"}),
        (
            "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            {
                **{"VALU writes VGPR": "v0", "VALU reads VGPR": "v1", "DPP reads VGPR": "v1"},
                **{"DPP runs by EXEC": "exec_lo exec_hi"},
            },
        ),
        (
            "v_readlane_b32 s4, v1, s2",
            {
                **{"VALU reads VGPR": "v1", "VALU reads SGPR": "s2"},
                **{"lane is chosen by SGPR": "s2", "v_readlane reads VGPR": "v1"},
                **{"v_readlane or v_writelane runs by EXEC": "exec_lo exec_hi"},
            },
        ),
        (
            "v_div_fmas_f32 v0, v1, v2, v3",
            {
                **{"VALU writes VGPR": "v0", "VALU reads VGPR": "v1 v2 v3"},
                **{"v_div_fmas reads VCC": "vcc_lo vcc_hi"},
            },
        ),
        (
            "v_dot2c_f32_f16_e32 v0, v1, v2",
            {"dot adds to VGPR": "v0", "VALU reads VGPR": "v1 v2"},
        ),
        (
            "v_mfma_f32_16x16x16_f16 v[0:1], v[4:5], v[6:7], v[8:9]",
            {
                **{"MFMA reads SrcA": "v4 v5", "MFMA reads SrcB": "v6 v7"},
                **{"XDL reads SrcC": "v8 v9", "MFMA writes VGPR": "v0 v1"},
                **{"MFMA runs by EXEC": "exec_lo exec_hi"},
            },
        ),
        ("s_getreg_b32 s4, hwreg(HW_REG_MODE)", {"s_getreg follows": "HW_REG_MODE"}),
        ("s_movrels_b32 s0, s1", {"s_movrel, s_sendmsg or a load to LDS reads M0": "s124"}),
    ],
)
def test_what_instructions_do(line, does):
    assert _uses(_footprint(line).as_second) == does


def test_what_counts():
    """On CDNA each instruction, on RDNA3 those of the vector units."""
    for line, passed in (("s_nop 4", 5), ("s_waitcnt vmcnt(0)", 1), ("v_exp_f32_e32 v0, v1", 1)):
        assert _footprint(line).ticks == (passed, 0)
    of = {
        **{"s_nop 4": (0, 0), "v_mov_b32_e32 v0, v1": (1, 0), "v_exp_f32_e32 v0, v1": (1, 1)},
        **{"ds_read_b32 v0, v1": (0, 2), "s_waitcnt_depctr 0xfff": (0, 2)},
        **{"s_waitcnt_depctr depctr_va_vdst(0)": (0, 2), "s_waitcnt_depctr 0xfffe": (0, 0)},
    }
    assert {line: _footprint(line, GFX11_STATES).ticks for line in of} == of


@pytest.mark.parametrize(
    ("mnemonic", "gfx90a", "gfx942"),
    [
        ("v_mfma_f32_4x4x1f32", "2-pass XDL", "2-pass SMFMA"),
        ("v_mfma_f32_16x16x4f32", "8-pass XDL", "8-pass SMFMA"),
        ("v_mfma_f32_32x32x1f32", "16-pass XDL", "16-pass SMFMA"),
        ("v_mfma_f32_16x16x16f16", "8-pass XDL", "4-pass XDL"),
        ("v_mfma_f32_32x32x8bf16_1k", "16-pass XDL", "8-pass XDL"),
        ("v_mfma_f32_4x4x4f16", "2-pass XDL", "2-pass XDL"),
        ("v_mfma_f32_16x16x4f16", "8-pass XDL", "8-pass XDL"),
        ("v_mfma_f32_32x32x4f16", "16-pass XDL", "16-pass XDL"),
        ("v_mfma_i32_16x16x32_i8", None, "4-pass XDL"),
        ("v_mfma_f32_16x16x8_xf32", None, "4-pass XDL"),
        ("v_mfma_f32_32x32x16_fp8_bf8", None, "8-pass XDL"),
        ("v_mfma_f64_4x4x4f64", "4x4 DGEMM", "4x4 DGEMM"),
        ("v_mfma_f64_16x16x4f64", "16x16 DGEMM", "16x16 DGEMM"),
    ],
)
def test_passes_of_products(mnemonic, gfx90a, gfx942):
    product = product_of(mnemonic)
    assert GFX942_STATES.product_name(product) == gfx942
    assert gfx90a is None or GFX90A_STATES.product_name(product) == gfx90a


def test_tables():
    """Some of what the manuals have, in their words."""
    for table, store, c in ((GFX90A_STATES, 1, 8), (GFX942_STATES, 2, 9)):
        required = table.required
        assert required["8-pass XDL writes VGPR", "VALU reads VGPR"] == 11
        assert required["8-pass XDL writes VGPR", "XDL reads SrcC"] == c
        assert required["8-pass XDL writes VGPR", "XDL reads the same SrcC"] == 0
        assert required["16-pass XDL writes VGPR", "memory reads VGPR"] == 19
        assert required["8-pass XDL reads SrcC", "VALU writes VGPR"] == 7
        assert required["16x16 DGEMM writes VGPR", "memory reads VGPR"] == 18
        assert required["wide store reads VGPR", "VALU writes VGPR"] == store
        assert required["VALU writes SGPR", "VMEM reads SGPR"] == 5
    assert GFX942_STATES.required["2-pass SMFMA writes VGPR", "XDL reads the same SrcC"] == 2
    assert GFX942_STATES.required["8-pass SMFMA writes VGPR", "VALU writes VGPR"] == 10
    assert GFX90A_STATES.unit == "wait states" and GFX11_STATES.unit == "vector instructions"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_what_is_done_after_something_is_done_by_somebody(name):
    """No name in a table is misspelt: each is left, and done, by one of these instructions."""
    table = GENERATIONS[name].states
    seen = {name for line in _LINES for name, _ in _all_uses(line, table)}
    assert {left for left, _ in table.required} <= seen
    done = {does.replace("the same ", "") for _, does in table.required}
    assert done <= seen


def _all_uses(line, table):
    footprint = table.footprint(instruction(line))
    return (*footprint.as_first, *footprint.as_second)


_LINES = (
    *("v_mov_b32_dpp v0, v1 row_mask:0xf", "v_exp_f32_e32 v0, v1", "v_readlane_b32 s4, v1, s2"),
    *("v_add_f16_sdwa v0, v1, v2 dst_sel:WORD_1", "v_dot2_f32_f16 v0, v1, v2, v3"),
    *("v_cndmask_b32_e32 v0, v1, v2, vcc", "v_div_fmas_f32 v0, v1, v2, v3", "s_sendmsg 1"),
    *("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", "global_store_dwordx4 v0, v[2:5], s[0:1]"),
    *("s_mov_b32 m0, 1", "s_setreg_b32 hwreg(HW_REG_MODE), s4", "ds_read_b32 v0, v1"),
    *(
        "s_getreg_b32 s4, hwreg(HW_REG_MODE)",
        "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], 0",
    ),
    *(
        f"v_mfma_{name} v[0:3], v[4:5], v[6:7], v[8:11]"
        for name in (
            *("f32_4x4x1f32", "f32_16x16x4f32", "f32_32x32x1f32", "f32_4x4x4f16"),
            *("f32_16x16x16f16", "f32_32x32x8f16", "f32_32x32x4f16", "f64_4x4x4f64"),
            *("f64_16x16x4f64", "f32_16x16x4f16"),
        )
    ),
)
