"""Files of arrays: what was written is read, and hostile or damaged files are refused."""

import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.npz import read_npz, write_npz


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_npz(path, {"a b": np.arange(6).reshape(2, 3), "c": np.float32(1)})
    read = read_npz(path)
    assert list(read) == ["a b", "c"]
    np.testing.assert_array_equal(read["a b"], [[0, 1, 2], [3, 4, 5]])
    assert read["c"].shape == ()


def test_no_file_means_no_arrays() -> None:
    assert read_npz(None) == {}


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"in\.npz cannot be read\n  why: No such file"):
        read_npz(str(tmp_path / "in.npz"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it does not begin as an .npz file does"),
        (b"hello, world", "it does not begin as an .npz file does"),
        (b"\x80\x04K*.", "it does not begin as an .npz file does"),  # a pickle
        (b"PK\x03\x04 truncated", "the archive is damaged"),
    ],
)
def test_what_is_no_npz_file_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_npz(str(path))
    assert str(caught.value) == (
        f"{path} is not an .npz file of plain arrays\n"
        f"  why: {why}\n"
        "  what to do: write it by numpy.savez(path, name=array)"
    )


def _member(path: Path, name: str, data: bytes) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, data)
    return str(path)


def _header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("readme.txt", b"hello", "'readme.txt' is not an array"),
        ("A.npy", _header("(3,)"), "'A' is damaged"),
        ("A.npy", _header("(-3,)"), "'A' is damaged"),
        ("A.npy", _header("(open('x'),)"), "'A' is damaged"),
        ("A.npy", _header(f"({1 << 60},)"), "'A' is too large"),
    ],
)
def test_hostile_members_are_refused(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    path = _member(tmp_path / "in.npz", name, data)
    with pytest.raises(UserError, match=rf"not an \.npz file of plain arrays\n  why: {why}"):
        read_npz(path)


@pytest.mark.search
@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    path, random = tmp_path / "in.npz", np.random.default_rng(seed)
    np.savez_compressed(path, A=np.arange(20, dtype=np.float32), B=np.ones((2, 3)))
    whole = path.read_bytes()
    for _ in range(40):
        data = bytearray(whole)
        data[random.integers(len(data))] = random.integers(256)
        path.write_bytes(
            data[: random.integers(1, len(data) + 1) if random.random() < 0.2 else None]
        )
        with suppress(UserError):
            read_npz(str(path))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, A=np.zeros(1000))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UserError, match="not an .npz file"):
        read_npz(str(path))


def test_a_single_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.npy"
    np.save(path, np.zeros(3))
    with pytest.raises(UserError, match=r"one array without a name\n.*numpy\.savez"):
        read_npz(str(path))


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, A=np.array([{}], object))
    with pytest.raises(
        UserError,
        match=r"plain arrays\n  why: 'A' holds Python objects, and reading these could run",
    ):
        read_npz(str(path))


def test_an_array_may_have_the_name_of_an_argument_of_numpy(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_npz(path, {"file": np.arange(3), "allow_pickle": np.arange(2)})
    assert {name: a.tolist() for name, a in read_npz(path).items()} == {
        "file": [0, 1, 2],
        "allow_pickle": [0, 1],
    }


def test_a_folder_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written\n  why: Is a directory"):
        write_npz(str(tmp_path), {"A": np.zeros(1)})
