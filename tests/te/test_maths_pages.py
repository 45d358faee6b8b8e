"""The pages of maths functions give what the table of intrinsics says; test_help.py runs them."""

import pytest

import refcomp as rc
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.te.maths_pages import page_of

# These are made of others, or are not part of te.
WITHOUT_PAGE = {"abs", "fma", "copysign", "pow", "atan2", "hypot", "float_to_bits", "bits_to_float"}
NAMES = sorted(set(INTRINSICS) - WITHOUT_PAGE)


@pytest.mark.parametrize("name", NAMES)
def test_page_is_the_docstring_of_the_function(name: str) -> None:
    assert getattr(rc, name).__doc__ == page_of(name)
    assert getattr(rc, name).__name__ == getattr(rc, name).__qualname__ == name


@pytest.mark.parametrize("name", NAMES)
def test_page_states_the_error_bound_of_the_table(name: str) -> None:
    ulp = INTRINSICS[name].ulp
    expected = "exact." if not ulp else f"at most {ulp:g} units in the last place"
    assert expected in " ".join(page_of(name).split())


@pytest.mark.parametrize("name", NAMES)
def test_refused_operands_are_those_that_the_page_names(name: str) -> None:
    refused = ["bool"] if "float" in INTRINSICS[name].kinds else ["bool", "float32"]
    for dtype in refused:
        with pytest.raises(rc.UserError, match=f"{name} is not defined on dtype"):
            getattr(rc, name)(rc.var("x", dtype))
    assert ("bool or a float" in page_of(name)) == (len(refused) == 2)
