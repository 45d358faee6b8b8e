"""The class of each instruction of PTX."""

import pytest

from refcomp.emulator.ptx.observers.opcodes import (
    CLASSES,
    PTX,
    CountedPtx,
    class_of,
    fmas_of,
    fmas_of_warp,
    has_f32_sums,
    matrix_dtype,
)


def _instruction(name):
    opcode, *modifiers = name.split(".")
    return CountedPtx(name, 0, "", opcode, tuple(modifiers))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fma.rn.f32", "multiply-add"),
        ("fma.rn.f16x2", "multiply-add"),
        ("mad.lo.s32", "integer"),
        ("mad.rn.f32", "multiply-add"),
        ("dp4a.s32.s32", "multiply-add"),
        ("mul.rn.f64", "other float"),
        ("add.bf16x2", "other float"),
        ("mul.wide.u32", "integer"),
        ("popc.b32", "integer"),
        ("rsqrt.approx.f32", "special function"),
        ("cvt.rn.f16.f32", "conversion"),
        ("setp.lt.f32", "compare and select"),
        ("mov.b64", "move"),
        ("shfl.sync.bfly.b32", "warp exchange"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tensor core"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "tensor core"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", "shared memory"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "shared memory"),
        ("ld.shared::cta.f32", "shared memory"),
        ("ld.global.nc.v4.f32", "global memory"),
        ("cp.async.ca.shared.global", "global memory"),
        ("cp.async.wait_all", "synchronization"),
        ("ld.param.u64", "constant"),
        ("st.local.f32", "local memory"),
        ("atom.shared.add.u32", "atomic"),
        ("bra.uni", "branch"),
        ("bar.sync", "synchronization"),
    ],
)
def test_the_class_of_an_instruction(name, kind):
    assert class_of(_instruction(name), "") == kind and kind in CLASSES


@pytest.mark.parametrize(
    ("space", "kind"),
    [("global", "global memory"), ("shared", "shared memory"), ("", "local memory")],
)
def test_generic_accesses_have_the_class_of_their_memory(space, kind):
    assert class_of(_instruction("ld.volatile.u32"), space) == kind
    assert class_of(_instruction("wmma.store.d.sync.aligned.row.m16n16k16.f32"), space) == kind


@pytest.mark.parametrize(
    ("name", "fmas"),
    [("fma.rn.f32", 20), ("fma.rn.f16x2", 40), ("dp4a.u32.u32", 80), ("add.f32", 0)],
)
def test_multiply_adds_of_lanes(name, fmas):
    one = _instruction(name)
    assert fmas_of(one, class_of(one, ""), 3, 20) == fmas


@pytest.mark.parametrize(
    ("name", "fmas", "dtype"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 2048, "f16"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 2048, "bf16"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 1024, "tf32"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 256, "f64"),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", 4096, "i8"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4096, "fp8"),
        ("mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16", 4096, "fp8"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32", 4096, "e2m1"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 4096, "f16"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", 4096, "bf16"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32", 4096, "i8"),
    ],
)
def test_products_of_matrices(name, fmas, dtype):
    one = _instruction(name)
    assert (fmas_of_warp(one), matrix_dtype(one)) == (fmas, dtype)
    assert fmas_of(one, "tensor core", 3, 20) == 3 * fmas


@pytest.mark.parametrize(
    ("name", "is_f32"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", True),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", False),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", True),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", False),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", True),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16", False),
    ],
)
def test_the_type_of_the_sums(name, is_f32):
    assert has_f32_sums(_instruction(name)) is is_f32


def test_products_and_sums_are_told_apart():
    names = ["mul.rn.f32", "mul.f16x2", "add.rn.ftz.f32", "mul.lo.s32", "add.s32", "fma.rn.f32"]
    assert [name for name in names if PTX.product.match(name)] == names[:2]
    assert [name for name in names if PTX.sum.match(name)] == names[2:3]
