"""Clocks of a multiprocessor, computed by hand from counts and figures."""

from dataclasses import replace

import pytest

from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts, MemoryTraffic
from refcomp.emulator.ptx.observers.opcodes import PTX, CountedPtx
from refcomp.profile.bound import bound_of
from refcomp.profile.cards import CARDS

CARD = replace(CARDS["H100 SXM"], units=10, gigahertz=1.0, bandwidth=100.0, tensor_clock=0.5)


def _kernel(*rows, groups=10, warps=4, **options):
    """Each block has so many warps."""
    counts = KernelCounts(
        "k", "sm_90", 32, 32, groups=groups, waves=warps * groups, launches=1, isa=PTX, **options
    )
    for number, (name, waves, access) in enumerate(rows):
        opcode, *modifiers = name.split(".")
        one = CountedPtx(name, number, "", opcode, tuple(modifiers))
        counts.by_number[number] = InstructionCounts(one, waves, 32 * waves, access, isa=PTX)
    return counts


def _seconds(*rows, **options):
    return bound_of(_kernel(*rows, **options), CARD).seconds


def _access(space, **costs):
    return MemoryTraffic(space, 4, False, False, **costs)


@pytest.mark.parametrize(
    ("name", "clocks"),
    [
        ("fma.rn.f32", 1 / 4),
        ("fma.rn.f64", 1 / 2),
        ("add.f16x2", 64 / 256),
        ("add.s32", 1 / 2),
        ("cvt.rn.f32.s32", 1 / 2),
        ("rsqrt.approx.f32", 2),
        ("setp.lt.f32", 1 / 4),
        ("setp.lt.u32", 1 / 2),
        ("mov.u32", 0),
    ],
)
def test_instructions_take_the_clocks_of_their_part(name, clocks):
    """A warp has 32 lanes; 10 multiprocessors run at 1 GHz."""
    assert _seconds((name, 1000, None))["arithmetic"] == pytest.approx(100 * clocks * 1e-9)


def test_parts_compute_beside_each_other():
    seconds = _seconds(("fma.rn.f32", 1000, None), ("add.s32", 1000, None), ("bra", 1000, None))
    assert seconds["arithmetic"] == pytest.approx(50e-9)
    assert seconds["issue"] == pytest.approx(3000 / 4 / 10 * 1e-9)


@pytest.mark.parametrize(
    ("name", "clocks"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 2048 / 2048 / 0.5),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 1024 / 1024 / 0.5),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 4096 / 4096 / 0.5),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 256 / 128),
        # Of a dtype without a figure, the time of the fastest one is a lower bound.
        ("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 8192 / 4096 / 0.5),
    ],
)
def test_tensor_cores_go_by_the_dtype(name, clocks):
    bound = bound_of(_kernel((name, 10, None)), CARD)
    assert bound.limit == "tensor cores"
    assert bound.seconds["tensor cores"] == pytest.approx(clocks * 1e-9)
    assert bound.peak == pytest.approx(1) and bound.useful == pytest.approx(1)


def test_the_type_of_the_sums_decides_on_cards_for_games():
    name = "mma.sync.aligned.m16n8k16.row.col.{0}.f16.f16.{0}"
    in_f16, in_f32 = (
        bound_of(_kernel((name.format(kind), 10, None)), CARDS["RTX 4090"]).seconds["tensor cores"]
        for kind in ("f16", "f32")
    )
    assert in_f32 == 2 * in_f16 > 0


def test_memories():
    seconds = _seconds(
        ("ld.shared.f32", 10, _access("shared", clocks=500)),
        ("shfl.sync.bfly.b32", 20, None),
        ("ld.global.f32", 10, _access("global", transactions=100)),
        ("ld.local.v2.f32", 10, None),
        read=10_000,
    )
    assert seconds["shared memory"] == pytest.approx((500 + 20) / 10 * 1e-9)
    assert seconds["L1"] == pytest.approx((100 * 32 + 320 * 8) / 128 / 10 * 1e-9)
    assert seconds["memory"] == pytest.approx(100e-9)


def test_multiply_adds_are_a_part_of_the_estimate():
    rows = (("fma.rn.f32", 1000, None), ("add.f32", 1000, None))
    bound = bound_of(_kernel(*rows), CARD)
    assert bound.limit == "arithmetic" and bound.useful == pytest.approx(0.5)
    assert bound_of(_kernel(*rows, warps=1), CARD).simds == 10
