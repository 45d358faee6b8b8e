"""Recordings: names of any characters survive a file, and damaged files are refused."""

from pathlib import Path

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.debug.recording import Recording, is_recording, load_recording
from refcomp.runtime.arrays.npz import read_npz, write_npz

HOSTILE = ("../../etc/x", "a/b", "nul\0byte", "%nodes", "%times", "50%25", "file", "", "ü→\n", ".")


def test_names_of_any_characters_survive(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    outputs = {name: np.full(k + 1, k, np.float32) for k, name in enumerate(HOSTILE)}
    times = dict.fromkeys(HOSTILE, (0.001, 0.002))
    Recording(outputs, times).save(path)
    loaded = load_recording(path)
    assert loaded.times == times
    assert {n: a.tolist() for n, a in loaded.outputs.items()} == {
        n: a.tolist() for n, a in outputs.items()
    }
    members = read_npz(path)
    assert not any("/" in name or "\0" in name for name in members)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npz"]


def test_a_recording_may_have_no_times(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    Recording({"y": np.ones(2)}).save(path)
    assert load_recording(path).times == {}
    assert is_recording(read_npz(path))


def test_other_archives_keep_their_names(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    np.savez(path, **{"50%25": np.ones(2), "a/b": np.zeros(1)})
    loaded = load_recording(path)
    assert list(loaded.outputs) == ["50%25", "a/b"]
    assert loaded.times == {}


@pytest.mark.parametrize(
    ("nodes", "times"),
    [
        (np.array(["y"]), np.ones((2, 1))),
        (np.array([b"y"]), np.ones((1, 1))),
        (np.array("y"), np.ones((1, 1))),
        (np.array(["y"]), np.ones((1, 1), np.float32)),
    ],
)
def test_times_that_belong_to_no_node_are_refused(tmp_path: Path, nodes, times) -> None:
    path = str(tmp_path / "x.npz")
    write_npz(path, {"y": np.ones(2), "%nodes": nodes, "%times": times})
    with pytest.raises(UserError) as info:
        load_recording(path)
    assert str(info.value) == (
        f"{path} is a damaged recording\n"
        "  why: %times has no row for each of %nodes\n"
        "  what to do: write it again: refcomp debug MODEL.onnx -o FILE.npz"
    )


def test_what_is_not_an_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(UserError, match=r"is not an \.npz file of plain arrays"):
        load_recording(str(path))
