"""The figures of NVIDIA's multiprocessors agree with the peak rates that data sheets print."""

import pytest

from refcomp.emulator.ptx.ledger import read_ptx_ledger
from refcomp.emulator.ptx.observers.opcodes import TENSOR, CountedPtx, class_of, matrix_dtype
from refcomp.profile.cards import CARDS
from refcomp.profile.multiprocessor import Multiprocessor


@pytest.mark.parametrize(
    ("name", "single", "double", "tensors"),
    [
        # Tflop/s of f32 and f64, and of tensor cores without sparsity.
        ("V100 SXM2", 15.7, 7.8, {"f16": 125}),
        ("T4", 8.1, 8.1 / 32, {"f16": 65, "i8": 130, "i4": 260}),
        ("A100 SXM", 19.5, 9.7, {"f64": 19.5, "tf32": 156, "bf16": 312, "i8": 624}),
        ("A10", 31.2, 31.2 / 64, {"tf32": 62.5, "bf16": 125, "f16": 125, "i8": 250}),
        ("RTX 3090", 35.6, 35.6 / 64, {"tf32": 35.6, "bf16": 71, "f16": 142, "i8": 284}),
        ("L4", 30.3, 30.3 / 64, {"tf32": 60, "bf16": 121, "f16": 121, "fp8": 242}),
        ("RTX 4090", 82.6, 82.6 / 64, {"tf32": 82.6, "bf16": 165, "f16": 330.3, "fp8": 660.6}),
        ("H100 SXM", 66.9, 33.5, {"tf32": 494.7, "f16": 989.4, "i8": 1978.9, "fp8": 1978.9}),
        ("H200 SXM", 66.9, 33.5, {"bf16": 989.4}),
    ],
)
def test_rates_are_those_of_the_data_sheets(name, single, double, tensors):
    """The figures are those that NVIDIA publishes: of data sheets, and of white papers."""
    card = CARDS[name]
    unit = card.unit
    assert isinstance(unit, Multiprocessor) and unit.mcpu == card.mcpu
    assert 2e-12 * card.peak == pytest.approx(single, rel=0.01)
    hertz = 2e-3 * card.units * card.gigahertz
    assert unit.f64 * hertz == pytest.approx(double, rel=0.01)
    for dtype, rate in tensors.items():
        clock = 1.0 if dtype == "f64" else card.tensor_clock
        assert unit.matrix[dtype] * clock * hertz == pytest.approx(rate, rel=0.01), dtype


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        # Tflop/s of products with sums in f32.
        ("RTX 3090", {"f16": 71}),
        ("RTX 4090", {"f16": 165.2, "fp8": 330.3}),
        ("A10", {"f16": 125}),
        ("L4", {"f16": 121, "fp8": 242}),
        ("A100 SXM", {"f16": 312}),
    ],
)
def test_cards_for_games_sum_in_f32_at_half_the_rate(name, sums):
    """The figures are those that NVIDIA publishes, likewise."""
    card = CARDS[name]
    for dtype, rate in sums.items():
        told = 2e-3 * card.unit.matrix_rate(dtype, has_f32_sums=True) * card.units * card.gigahertz
        assert told == pytest.approx(rate, rel=0.01), dtype


def test_without_a_figure_the_highest_rate_counts():
    unit = CARDS["V100 SXM2"].unit
    assert unit.matrix_rate("bf16", has_f32_sums=True) == unit.matrix["f16"]


def test_tensor_cores_of_the_h100_multiply_f64_at_the_full_clock():
    card = CARDS["H100 SXM"]
    assert 2e-3 * card.unit.matrix["f64"] * card.units * card.gigahertz == pytest.approx(66.9, 0.01)


# The first compute capability whose tensor cores multiply a dtype, by NVIDIA's manual of PTX.
_SINCE = {"f16": 70, "i8": 75, "bf16": 80, "tf32": 80, "f64": 80, "fp8": 89}


def _matrix_dtypes():
    """The dtypes of all matrix instructions of the ledger of PTX."""
    for entry in read_ptx_ledger():
        opcode, *types = entry.name.split(".")
        one = CountedPtx(entry.name, 0, "", opcode, ("mma", *types))
        if opcode in ("mma", "wmma") and len(types) > 1 and class_of(one, "") == TENSOR:
            yield matrix_dtype(one)


@pytest.mark.parametrize("name", [name for name in CARDS if CARDS[name].mcpu.startswith("sm_")])
def test_there_is_a_rate_for_each_matrix_instruction(name):
    unit = CARDS[name].unit
    assert {*_matrix_dtypes()} == {*_SINCE}
    capability = int(unit.mcpu.removeprefix("sm_"))
    assert {dtype for dtype, since in _SINCE.items() if since <= capability} <= {*unit.matrix}
