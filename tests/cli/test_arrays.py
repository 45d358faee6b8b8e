"""Arrays come from .npz files, are checked against what is wanted, and are filled otherwise."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refcomp.artifacts import TensorParam
from refcomp.cli.arrays import Filling, complete, filled, read_npz, write_npz
from refcomp.dtype import as_dtype
from refcomp.errors import UserError

A = TensorParam("A", as_dtype("float32"), ("n", 4))
B = TensorParam("B", as_dtype("int32"), ("n", ("add", "m", 1)))
C = TensorParam("C", as_dtype("bfloat16"), ("n",), is_output=True)


def filling(mode: str = "random", seed: int = 0, **symbols: int) -> Filling:
    return Filling(mode, seed, symbols)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_npz(path, {"a b": np.arange(6).reshape(2, 3), "c": np.float32(1)})
    read = read_npz(path)
    assert list(read) == ["a b", "c"]
    np.testing.assert_array_equal(read["a b"], [[0, 1, 2], [3, 4, 5]])
    assert read["c"].shape == ()


def test_no_file_means_no_arrays() -> None:
    assert read_npz(None) == {}


def test_bfloat16_survives_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_npz(path, {"C": np.array([1, -2.5], ml_dtypes.bfloat16)})
    made, _ = complete([C], read_npz(path), filling())
    assert made["C"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(made["C"].astype(np.float32), [1, -2.5])


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"in\.npz cannot be read\n  why: No such file"):
        read_npz(str(tmp_path / "in.npz"))


@pytest.mark.parametrize("content", [b"", b"hello, world", b"PK\x03\x04 truncated"])
def test_what_is_no_npz_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"not an \.npz file of plain arrays(?s:.*)numpy\.savez"):
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
    with pytest.raises(UserError, match=r"plain arrays\n.*allow_pickle=False"):
        read_npz(str(path))


def test_symbols_are_one_unless_they_are_told() -> None:
    made, sizes = complete([A, B], {}, filling())
    assert sizes == {"n": 1, "m": 1}
    assert (made["A"].shape, made["B"].shape) == ((1, 4), (1, 2))


def test_symbols_are_told_by_arrays_and_by_options() -> None:
    given = {"A": np.zeros((3, 4), np.float32)}
    made, sizes = complete([A, B], given, filling(m=7))
    assert sizes == {"n": 3, "m": 7}
    assert made["B"].shape == (3, 8)
    assert made["A"] is not None


def test_empty_dimensions_are_fine() -> None:
    made, _ = complete([A], {}, filling(n=0))
    assert made["A"].shape == (0, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"D": np.zeros(3)}, r"no input 'D'\n.*inputs: A: f32\[n, 4\], B: i32\[n, \(m \+ 1\)\]"),
        ({"A": np.zeros((2, 4))}, r"A has dtype float64, expected float32(?s:.*)astype\('float32'"),
        ({"A": np.zeros((2, 5), "f")}, r"A has shape \(2, 5\), expected \(n, 4\)"),
        ({"A": np.zeros(4, "f")}, r"A has shape \(4,\), expected \(n, 4\)"),
        (
            {"A": np.zeros((2, 4), "f"), "B": np.zeros((3, 2), "i4")},
            "dimension n is 2 by A, but 3 by B",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        complete([A, B], given, filling())


def test_an_option_that_contradicts_an_array_is_refused() -> None:
    given = {"A": np.zeros((2, 4), np.float32)}
    with pytest.raises(UserError, match="dimension n is 5 by --symbol, but 2 by A"):
        complete([A], given, filling(n=5))


def test_symbols_that_are_not_there_or_negative_are_refused() -> None:
    with pytest.raises(UserError, match=r"no symbolic dimension 'k'\n.*symbols: m, n"):
        complete([A, B], {}, filling(k=3))
    with pytest.raises(UserError, match="dimension n cannot be -1"):
        complete([A, B], {}, filling(n=-1))


@pytest.mark.parametrize("size", [10**15, 10**18, 10**30])
@pytest.mark.parametrize("mode", ["random", "zeros"])
def test_what_no_memory_can_hold_is_refused(size: int, mode: str) -> None:
    with pytest.raises(UserError, match=rf"no memory for A of shape \({size}, 4\)"):
        complete([A], {}, filling(mode, n=size))


def test_outputs_begin_as_zeros() -> None:
    made, _ = complete([C], {}, filling("ones", n=2))
    np.testing.assert_array_equal(made["C"].astype(np.float32), [0, 0])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
def test_every_dtype_can_be_filled(dtype: str) -> None:
    random = np.random.default_rng(1)
    for mode, expected in (("zeros", {0.0}), ("ones", {1.0})):
        made = filled(as_dtype(dtype), (2, 3), mode, random)
        assert made.dtype.name == dtype
        assert set(made.astype(np.float64).flat) == expected
    made = filled(as_dtype(dtype), (100,), "random", random)
    assert made.dtype.name == dtype
    assert len(set(made.astype(np.float64).flat)) > 1


def test_random_arrays_depend_on_the_seed_alone() -> None:
    first, _ = complete([A], {}, filling(seed=3))
    again, _ = complete([A], {}, filling(seed=3))
    other, _ = complete([A], {}, filling(seed=4))
    np.testing.assert_array_equal(first["A"], again["A"])
    assert (first["A"] != other["A"]).any()
