"""What stands around the networks: their names, what they read, and how answers are judged."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.real_models import (
    basic_pitch,
    blazeface,
    magika,
    minilm,
    mobilenet,
    ocr,
    silero_vad,
)
from benchmarks.real_models.network import NAMES, Answer, find_network, read_models
from benchmarks.real_models.packages import read_list
from refcomp.foundation.errors import ToolchainError, UserError


def test_each_network_has_a_package_of_its_own() -> None:
    keys = [find_network(name).PACKAGE for name in NAMES]
    assert sorted(keys) == sorted(read_list())


def test_an_unknown_network_is_named_with_near_ones() -> None:
    with pytest.raises(UserError, match="'blazefase' is not one of the networks") as info:
        find_network("blazefase")
    assert info.value.remedy == "did you mean blazeface?"
    with pytest.raises(UserError) as info:
        find_network("xyz")
    assert info.value.remedy.startswith("there are mobilenet, blazeface,")


def test_an_answer_is_right_if_its_text_is_the_expected_one() -> None:
    assert Answer.of("2 + 2", 4, "4").is_right
    assert not Answer.of("2 + 2", 4, 5).is_right


def test_models_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"a")
    assert read_models(tmp_path, net="a.onnx") == {"net": b"a"}


def test_words_are_split_into_their_longest_pieces() -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "##a", "cafe", ".", "_"]
    tokenizer = minilm.Tokenizer(words)

    def pieces(sentence: str) -> str:
        return " ".join(words[token] for token in tokenizer.tokens(sentence)[1:-1])

    assert pieces("Unaffable café.") == "un ##aff ##able cafe ."
    assert pieces("cafe_ xyz unb") == "cafe _ [UNK] [UNK]"
    feeds = tokenizer.feeds(["cafe", "unaffable"])
    assert feeds["ids"].tolist() == [[2, 8, 3, 0, 0], [2, 4, 5, 6, 3]]
    assert feeds["mask"].tolist() == [[1, 1, 1, 0, 0], [1] * 5]


def test_magika_reads_the_ends_of_a_file_without_white_space() -> None:
    config = {"beg_size": 4, "end_size": 4, "block_size": 8, "padding_token": 256}
    choose = magika.choose_bytes
    assert choose(b"  abcdefghij ", config).tolist() == [*b"abcd", *b"ghij"]
    assert choose(b" a ", config).tolist() == [*b"a ", 256, 256, 256, 256, *b" a"]
    assert choose(b"  ", config).tolist() == [256] * 8


def test_magika_is_asked_for_files_of_every_checkout() -> None:
    assert all((magika.ROOT / name).is_file() for name in magika.FILES)


def test_keys_have_the_names_and_frequencies_of_a_piano() -> None:
    names = [basic_pitch.name_of(key) for key in (0, 3, 39, 48, 87)]
    assert names == ["A0", "C1", "C4", "A4", "C8"]
    assert basic_pitch.frequency_of("A4") == pytest.approx(440)
    assert basic_pitch.frequency_of("C4") == pytest.approx(261.6256, rel=1e-6)


def test_a_played_note_has_its_frequency_in_its_part_of_the_window() -> None:
    window = basic_pitch.play(("C4", "A4"))
    half = basic_pitch.SAMPLES // 2
    for part, frequency in ((window[:half], 261.6), (window[half:], 440)):
        spectrum = np.abs(np.fft.rfft(part))
        assert spectrum.argmax() * basic_pitch.RATE / half == pytest.approx(frequency, abs=2)


def test_a_face_is_taken_from_the_grid_with_the_higher_score() -> None:
    logits16, logits8 = np.full((1, 512, 1), -9.0), np.full((1, 384, 1), -9.0)
    boxes16, boxes8 = np.zeros((1, 512, 16)), np.zeros((1, 384, 16))
    logits8[0, (2 * 8 + 3) * 6 + 1], boxes8[0, (2 * 8 + 3) * 6 + 1, :4] = 4, (0, 8, 24, 24)

    def run(*_):
        return [logits16, logits8, boxes16, boxes8]

    box = blazeface.find_best(run, "near", np.zeros((1, 128, 128, 3)))
    assert box[1:] == (3.5 / 8, 2.5 / 8 + 1 / 16, 24 / 128, 24 / 128)
    assert blazeface.place_of(box._replace(y=0.3)) == "in her head"
    assert blazeface.place_of(box._replace(x=0.9)) == "at 0.90, 0.38, 0.19 wide"
    assert blazeface.place_of(box._replace(width=0.5)).endswith("0.50 wide")
    assert blazeface.place_of(box._replace(score=0.7)) == "no face"


def test_a_photograph_is_scaled_cropped_and_normalized() -> None:
    photograph = Image.new("RGB", (300, 500), (255, 0, 0))
    made = mobilenet.to_input(photograph)
    assert made.shape == (1, 3, 224, 224) and made.dtype == np.float32
    assert made[0, :, 5, 7].tolist() == pytest.approx(
        [(1 - 0.485) / 0.229, -2.0357, -1.8044], rel=1e-3
    )


def test_the_classes_of_photographs_are_imagenets() -> None:
    labels = mobilenet.read_labels()
    assert len(labels) == 1000
    assert {*mobilenet.CLASSES.values()} <= {*labels}
    places = [
        labels.index(name) for name in ("tench", "moped", "palace", "espresso", "toilet tissue")
    ]
    assert places == [0, 665, 698, 967, 999]


def test_a_slanted_line_is_cut_out_upright() -> None:
    page = np.full((80, 220, 3), 255, np.uint8)
    marks = np.zeros((96, 224), np.float32)
    for column in range(20, 200):
        top = 20 + column // 10
        page[top : top + 10, column] = 0
        marks[top : top + 10, column] = 1

    def run(name, feeds):
        assert name == "find" and feeds["x"].shape == (1, 3, 96, 224)
        return [marks[None, None]]

    (line,) = ocr.find_lines(run, page)
    assert line.slope == pytest.approx(0.1, abs=0.005)
    picture = ocr.cut(page, line)
    dark = np.nonzero((picture[..., 0] < 128).mean(axis=1) > 0.5)[0]
    assert 8 <= len(dark) <= 11
    assert picture[0].min() == 255


def test_repeated_characters_of_a_line_count_once() -> None:
    characters = ["a", "b"]
    scores = np.eye(4)[[0, 1, 1, 0, 1, 3, 2, 2]][None]
    widths = []

    def run(name, feeds):
        widths.append(feeds["x"].shape)
        return [scores]

    assert ocr.read_line(run, np.zeros((24, 100, 3), np.uint8), characters) == "aa b"
    assert widths == [(1, 3, 48, 200)]


def test_the_direction_is_judged_by_the_beginning_of_a_line() -> None:
    def run(name, feeds):
        assert name == "turn" and feeds["x"].shape == (1, 3, 48, 192)
        return [np.array([[0.2, 0.8]])]

    assert ocr.is_upside_down(run, np.zeros((24, 600, 3), np.uint8))
    assert ocr.is_upside_down(run, np.zeros((24, 30, 3), np.uint8))


def test_each_call_of_the_speech_detector_gets_the_state_and_the_samples_before() -> None:
    calls = []

    def run(name, feeds):
        calls.append(feeds)
        return [np.array([[0.5]]), feeds["state"] + 1]

    samples = np.arange(1100, dtype=np.float32)
    assert list(silero_vad.listen(run, "plain", samples, 16_000)) == [0.5, 0.5]
    assert [call["state"].max() for call in calls] == [0, 1]
    assert calls[1]["input"][0].tolist() == samples[512 - 64 : 1024].tolist()
    assert calls[0]["sr"] == 16_000
    list(silero_vad.listen(run, "half", samples, 16_000))
    assert "sr" not in calls[-1]


def test_a_missing_espeak_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="espeak-ng is not installed") as info:
        silero_vad.speak("hello")
    assert info.value.remedy == "as root: apt-get install espeak-ng"
