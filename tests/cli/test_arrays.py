"""Arrays come from .npz files, are checked against what is wanted, and are filled otherwise."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refcomp.cli.arrays import (
    Filling,
    GivenArrays,
    add_sizes,
    chosen_sizes,
    complete,
    filled,
)
from refcomp.foundation.artifacts import TensorParam
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.npz import read_npz, write_npz

A = TensorParam("A", as_dtype("float32"), ("n", 4))
B = TensorParam("B", as_dtype("int32"), ("n", ("add", "m", 1)))
C = TensorParam("C", as_dtype("bfloat16"), ("n",), is_output=True)


def filling(mode: str = "random", seed: int = 0, **symbols: int) -> Filling:
    return Filling(mode, seed, symbols)


def test_bfloat16_survives_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_npz(path, {"C": np.array([1, -2.5], ml_dtypes.bfloat16)})
    made, _ = complete([C], read_npz(path), filling())
    assert made["C"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(made["C"].astype(np.float32), [1, -2.5])


def test_raw_bytes_and_records_are_no_floats() -> None:
    for dtype in ("V4", [("x", "<f4")]):
        with pytest.raises(UserError, match=r"array A has dtype (?s:.*), expected float32"):
            complete([A], {"A": np.zeros((2, 4), dtype)}, filling())


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
        (
            {"D": np.zeros(3)},
            r"unknown input 'D'\n.*inputs: A: f32\[n, 4\], B: i32\[n, \(m \+ 1\)\]",
        ),
        ({"A": np.zeros((2, 4))}, r"A has dtype float64, expected float32(?s:.*)astype\('float32'"),
        ({"A": np.zeros((2, 5), "f")}, r"A has shape \(2, 5\), expected \(n, 4\) = \(2, 4\)"),
        (
            {"A": np.zeros(4, "f")},
            r"A has shape \(4,\), expected \(n, 4\)\n(?s:.*)its rank is 1, not 2",
        ),
        (
            {"A": np.zeros((2, 4), "f"), "B": np.zeros((3, 2), "i4")},
            r"B has shape \(3, 2\), expected \(n, m \+ 1\) = \(2, 2\)\n(?s:.*)"
            "n is 2 by A; m is 1 by B",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        complete([A, B], given, filling())


def test_an_option_that_contradicts_an_array_is_refused() -> None:
    given = {"A": np.zeros((2, 4), np.float32)}
    with pytest.raises(UserError, match=r"\(n, 4\) = \(5, 4\)(?s:.*)n is 5 by --symbol"):
        complete([A], given, filling(n=5))


def test_symbols_that_are_not_there_or_negative_are_refused() -> None:
    with pytest.raises(UserError, match=r"unknown symbolic dimension 'k'\n.*symbols: m, n"):
        complete([A, B], {}, filling(k=3))
    with pytest.raises(UserError, match="dimension n cannot be -1"):
        complete([A, B], {}, filling(n=-1))


@pytest.mark.parametrize("size", [10**15, 10**18, 10**30])
@pytest.mark.parametrize("mode", ["random", "zeros"])
def test_what_no_memory_can_hold_is_refused(size: int, mode: str) -> None:
    with pytest.raises(UserError, match=rf"no memory for A of shape \({size}, 4\)"):
        complete([A], {}, filling(mode, n=size))


D = TensorParam("D", as_dtype("float32"), (("add", "n", -2), ("mul", "n", "m")))
E = TensorParam("E", as_dtype("float32"), (("floordiv", "n", 2),))


def test_sizes_follow_from_compound_extents() -> None:
    made, sizes = complete([D, E, A], {"D": np.zeros((3, 20), "f")}, filling())
    assert sizes == {"n": 5, "m": 4}
    assert (made["E"].shape, made["A"].shape) == ((2,), (5, 4))


def test_a_wrong_compound_extent_is_refused_with_numbers_and_its_file() -> None:
    arrays = {"A": np.zeros((5, 4), "f"), "D": np.zeros((3, 21), "f")}
    with pytest.raises(UserError) as caught:
        complete([A, D], arrays, filling(), source="in.npz")
    assert str(caught.value) == (
        "array D has shape (3, 21), expected (n - 2, n * m) = (3, 20)\n"
        "  where: D: f32[(n - 2), (n * m)], in in.npz\n"
        "  why: n is 5 by A; m is 4 by D\n"
        "  what to do: give arrays whose shapes agree"
    )


def test_near_misses_of_names_are_named() -> None:
    images = TensorParam("images", A.dtype, ("batch", 4))
    with pytest.raises(UserError, match=r"unknown input 'image'\n.*did you mean images\? inputs: "):
        complete([images], {"image": np.zeros((1, 4), "f")}, filling())
    with pytest.raises(UserError, match=r"dimension 'bach'\n.*did you mean batch\? symbols: "):
        complete([images], {}, filling(bach=3))


def test_a_size_that_nothing_determines_is_asked_for() -> None:
    with pytest.raises(UserError) as caught:
        complete([E], {"E": np.zeros(3, "f")}, filling())
    assert str(caught.value) == (
        "the size of n is not known\n"
        "  where: (n // 2) is 3 in E\n"
        "  why: no array that is given has one extent that determines it\n"
        "  what to do: give it: --symbol n=10"
    )
    assert complete([E], {"E": np.zeros(3, "f")}, filling(n=7))[1] == {"n": 7}


def test_a_negative_extent_is_empty_where_its_size_is_given() -> None:
    assert complete([D], {}, filling(n=1, m=2))[0]["D"].shape == (0, 2)


def test_a_negative_extent_of_a_default_size_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        complete([D], {}, filling())
    assert str(caught.value) == (
        "an extent of D is (n - 2) = -1\n"
        "  where: D: f32[(n - 2), (n * m)]\n"
        "  why: n is 1 by default\n"
        "  what to do: give an array that determines n, or --symbol n=10"
    )


def test_scalar_arguments_are_sizes() -> None:
    sizes = chosen_sizes([A], {}, {"n": 6, "other": 3})
    add_sizes(sizes, [GivenArrays([A], {})])
    assert (sizes.values["n"], sizes.origins["n"]) == (6, "--scalar")


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
