"""The figures of cards agree with the peak rates that their data sheets print."""

import pytest

from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.ledger import read_ledger
from refcomp.emulator.observers.counting.mnemonics import MFMA, class_of, matrix_dtype
from refcomp.foundation.errors import UserError
from refcomp.profile.cards import CARDS, card_for


@pytest.mark.parametrize(
    ("name", "vector", "matrices"),
    [
        # Tflop/s of the data sheets: f32 vectors without packing or pairing, then matrices.
        ("MI210", 22.6, {"f64": 45.3, "f32": 45.3, "f16": 181.0, "i8": 181.0}),
        ("MI250X", 47.9 / 2, {"f64": 95.7 / 2, "f16": 383.0 / 2, "bf16": 383.0 / 2}),
        ("MI250", 45.3 / 2, {"f64": 90.5 / 2, "f16": 362.1 / 2, "i8": 362.1 / 2}),
        ("MI300X", 81.7, {"f32": 163.4, "xf32": 653.7, "f16": 1307.4, "fp8": 2614.9}),
        ("MI300A", 61.3, {"f64": 122.6, "f32": 122.6, "bf16": 980.6, "i8": 1961.2}),
        ("MI325X", 81.7, {"f64": 163.4, "f16": 1307.4, "i8": 2614.9, "fp8": 2614.9}),
        ("RX 7900 XTX", 61.4 / 2, {"f16": 122.8, "i8": 122.8}),
        ("RX 7900 XT", 51.6 / 2, {"f16": 103.2}),
        ("W7900", 61.3 / 2, {"f16": 122.6, "i8": 122.6, "i4": 245.3}),
    ],
)
def test_rates_are_those_of_the_data_sheets(name, vector, matrices):
    card = CARDS[name]
    assert 2e-12 * card.peak == pytest.approx(vector, rel=0.01)
    for dtype, rate in matrices.items():
        told = 2e-3 * card.unit.matrix[dtype] * card.units * card.gigahertz
        assert told == pytest.approx(rate, rel=0.01), dtype


def test_a_card_is_found_by_its_gpu_or_its_name():
    assert card_for("gfx942").name == "MI300X"
    assert card_for("gfx90a").name == "MI210"
    assert card_for("gfx90a", "MI250X").name == "MI250X"
    assert card_for("gfx1201") is None
    assert card_for("gfx1100", "rx7900xtx").name == "RX 7900 XTX"
    assert card_for("gfx942", "mi325x").bandwidth == 6000
    assert card_for("sm_90").name == "H100 SXM"
    assert card_for("sm_80", "a100").name == "A100 SXM"
    assert card_for("sm_89", "rtx4090").bandwidth == 1008
    assert all(card.source.startswith(("AMD ", "NVIDIA ")) for card in CARDS.values())


def test_there_is_a_card_for_each_gpu_that_is_emulated():
    assert [card_for(gpu).mcpu for gpu in GENERATIONS] == [*GENERATIONS]


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_there_is_a_rate_for_each_matrix_instruction(gpu):
    names = [entry.mnemonic for entry in read_ledger(GENERATIONS[gpu])]
    dtypes = {matrix_dtype(name) for name in names if class_of(name) == MFMA}
    assert len(dtypes) > 2 and dtypes <= {*card_for(gpu).unit.matrix}


def test_wrong_names_are_refused():
    with pytest.raises(UserError, match="no figures of the card 'B300'"):
        card_for("gfx942", "B300")
    with pytest.raises(UserError, match="no figures of the card 'RX 7900'"):
        card_for("gfx1100", "RX 7900")
    with pytest.raises(UserError, match="the code is for sm_80, the card T4 has sm_75"):
        card_for("sm_80", "T4")
    with pytest.raises(UserError, match="did you mean MI300X[^?]*[?] use MI210, "):
        card_for("gfx942", "MI300")
    with pytest.raises(UserError, match="is for gfx942, the card MI210 has gfx90a") as error:
        card_for("gfx942", "MI210")
    assert "use MI300X" in str(error.value)
    with pytest.raises(UserError, match="no figures are known for this GPU"):
        card_for("gfx1201", "MI210")
