"""The figures of cards agree with the peak rates that their data sheets print."""

import pytest

from refcomp.emulator.generation import GENERATIONS
from refcomp.errors import UserError
from refcomp.profile.cards import CARDS, card_for


@pytest.mark.parametrize(
    ("name", "vector", "matrices"),
    [
        # Tflop/s of the data sheets: f32 vectors without packing or pairing, then matrices.
        ("MI210", 22.6, {"f64": 45.3, "f32": 45.3, "f16": 181.0, "i8": 181.0}),
        ("MI250X", 47.9 / 2, {"f64": 95.7 / 2, "f16": 383.0 / 2, "bf16": 383.0 / 2}),
        ("MI300X", 81.7, {"f32": 163.4, "xf32": 653.7, "f16": 1307.4, "fp8": 2614.9}),
        ("RX 7900 XTX", 61.4 / 2, {"f16": 122.8, "i8": 122.8}),
    ],
)
def test_rates_are_those_of_the_data_sheets(name, vector, matrices):
    card = CARDS[name]
    assert 2e-12 * card.peak == pytest.approx(vector, rel=0.01)
    for dtype, rate in matrices.items():
        told = 2e-3 * card.matrix[dtype] * card.units * card.gigahertz
        assert told == pytest.approx(rate, rel=0.01), dtype


def test_a_card_is_found_by_its_gpu_or_its_name():
    assert card_for("gfx942").name == "MI300X"
    assert card_for("gfx90a").name == "MI210"
    assert card_for("gfx90a", "MI250X").name == "MI250X"
    assert card_for("gfx1201") is None


def test_there_is_a_card_for_each_gpu_that_is_emulated():
    assert [card_for(gpu).mcpu for gpu in GENERATIONS] == [*GENERATIONS]


def test_wrong_names_are_refused():
    with pytest.raises(UserError, match="no figures of the card 'H100'"):
        card_for("gfx942", "H100")
    with pytest.raises(UserError, match="is for gfx942, the card MI210 has gfx90a") as error:
        card_for("gfx942", "MI210")
    assert "use MI300X" in str(error.value)
    with pytest.raises(UserError, match="there are no figures of one"):
        card_for("gfx1201", "MI210")
