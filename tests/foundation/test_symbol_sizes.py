"""Sizes of symbols follow from the extents of arrays: plain ones, then linear ones."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refcomp.foundation.artifacts import Dim, evaluate_dim
from refcomp.foundation.symbol_sizes import Extent, Sizes, least_size, solvable_symbols


def solved(*pairs: tuple[Dim, int], **known: int) -> dict[str, int]:
    sizes = Sizes()
    for name, size in known.items():
        sizes.add(name, size, "--symbol")
    sizes.solve(Extent(dim, size, f"array {k}") for k, (dim, size) in enumerate(pairs))
    return sizes.values


@pytest.mark.parametrize(
    ("dim", "extent", "size"),
    [
        ("n", 7, 7),
        (("sub", "n", 2), 7, 9),
        (("add", "n", -2), 7, 9),
        (("mul", 2, "n"), 8, 4),
        (("mul", ("add", "n", 1), 3), 12, 3),
        (("sub", 10, "n"), 7, 3),
        (("sub", ("mul", 3, "n"), "n"), 8, 4),
        (("mul", 2, "n"), 9, 4),  # no size fits: the comparison of extents finds out
        (("sub", 2, "n"), 5, 0),
    ],
)
def test_one_linear_extent_determines_a_symbol(dim: Dim, extent: int, size: int) -> None:
    assert solved((dim, extent)) == {"n": size}


@pytest.mark.parametrize(
    "dim", [("floordiv", "n", 2), ("floormod", "n", 2), ("max", "n", 2), ("add", "n", "m"),
            ("mul", "n", "n"), ("mul", "n", 0), ("sub", "n", "n"), 5],
)  # fmt: skip
def test_other_extents_determine_nothing(dim: Dim) -> None:
    assert solved((dim, 0)) == {}


def test_plain_extents_come_first_and_the_first_array_wins() -> None:
    assert solved((("add", "n", 1), 8), ("n", 5), ("n", 6)) == {"n": 5}
    assert solved(("n", 5), n=4) == {"n": 4}


def test_a_size_that_is_found_makes_another_extent_linear() -> None:
    pairs = (("mul", "n", "m"), 12), (("sub", "n", "k"), 1), ("k", 3)
    assert solved(*pairs) == {"k": 3, "n": 4, "m": 3}
    assert solved((("mul", "n", "m"), 0), ("n", 0)) == {"n": 0}


def test_sizes_are_explained_by_their_origins() -> None:
    sizes = Sizes()
    sizes.add("m", 2, "--symbol")
    sizes.solve([Extent(("sub", "n", 2), 7, "A")])
    assert sizes.explain(("mul", ("add", "n", "n"), ("add", "m", "k"))) == (
        "n is 9 by A; m is 2 by --symbol"
    )
    assert sizes.explain(4) == ""


def test_the_form_of_extents_says_which_symbols_are_solvable() -> None:
    assert solvable_symbols([("add", "n", 1), ("mul", "n", "m")]) == {"n", "m"}
    assert solvable_symbols([("mul", "n", "m")], known=["n"]) == {"n", "m"}
    assert solvable_symbols([("mul", "n", "m"), ("floordiv", "k", 2)]) == set()


DIMS: st.SearchStrategy[Dim] = st.recursive(
    st.integers(-3, 3) | st.sampled_from(["n", "m", "k"]),
    lambda dims: st.tuples(st.sampled_from(["add", "sub", "mul", "floordiv", "min"]), dims, dims),
    max_leaves=4,
)


@given(
    dims=st.lists(DIMS, max_size=5),
    truth=st.fixed_dictionaries(dict.fromkeys("nmk", st.integers(0, 9))),
)
def test_what_is_solved_is_the_truth(dims: list[Dim], truth: dict[str, int]) -> None:
    extents = [evaluate_dim(dim, truth) for dim in dims]
    assume(all(extent >= 0 for extent in extents))
    found = solved(*zip(dims, extents, strict=True))
    assert found == {name: truth[name] for name in found}


def test_the_least_size_that_fits_an_extent():
    assert least_size(("sub", "m", 1)) == ("m", 1)
    assert least_size(("sub", ("mul", 2, "m"), 5)) == ("m", 3)
    assert least_size(("sub", 5, "m")) is None
    assert least_size(("sub", "n", "m")) is None
