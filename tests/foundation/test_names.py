"""Names that are harmless and unique."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import (
    UniqueNames,
    checked_callee,
    checked_name,
    mangle,
    to_identifier,
)


@pytest.mark.parametrize("name", ["matmul", "_x1", "A", "for", "x" * 120])
def test_harmless_names_stay(name):
    assert mangle(name) == to_identifier(name) == name


def test_dots_are_kept_in_text_only():
    assert to_identifier("i.outer") == "i.outer"
    assert re.fullmatch(r"i_outer_[0-9a-f]{8}", mangle("i.outer"))


@pytest.mark.parametrize(
    "name", ["", "1x", "a b", "x\n}", '"; ret', "ä", "\ud800", "*/", "x" * 121]
)
def test_hostile_names_become_harmless_and_stay_different(name):
    assert re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", mangle(name))
    assert re.fullmatch("[A-Za-z_][A-Za-z0-9_.]*", to_identifier(name))
    assert mangle(name) == mangle(name)
    assert mangle(name) not in (name, mangle(name + "!"), mangle(name + "?"))


@given(st.lists(st.text(max_size=6), unique=True, max_size=20))
def test_different_names_are_mangled_to_different_ones(names: list[str]):
    assert len({mangle(name) for name in names}) == len(names)
    assert len({to_identifier(name) for name in names}) == len(names)


def test_unique_names_get_a_number_when_taken_or_reserved():
    names = UniqueNames({"for"})
    assert [names.take(wish) for wish in ("i", "i", "i_1", "i", "for")] == [
        "i",
        "i_1",
        "i_1_1",
        "i_2",
        "for_1",
    ]


def test_separator_and_first_number_are_chosen():
    assert UniqueNames([], separator=".").take("A") == "A"
    assert UniqueNames(["A", "A.1"], separator=".").take("A") == "A.2"
    names = UniqueNames({"i"}, separator=".", first=2)
    assert [names.take("i") for _ in range(3)] == ["i.2", "i.3", "i.4"]
    assert "i.3" in names and "i.5" not in names


def test_a_released_number_is_free_again():
    names = UniqueNames()
    assert [names.take("i") for _ in range(3)] == ["i", "i_1", "i_2"]
    names.release("i_1")
    assert [names.take("i") for _ in range(2)] == ["i_1", "i_3"]


def test_a_released_name_is_free_again():
    names = UniqueNames()
    first, second = names.take("i"), names.take("i")
    names.release(first)
    assert (second, names.take("i")) == ("i_1", "i")


def test_a_name_is_any_text():
    assert checked_name("\n; rm", "a thing") == "\n; rm"
    with pytest.raises(UserError, match=r"b'x' is not a name for a thing\n.*a name is a text"):
        checked_name(b"x", "a thing")


def test_names_of_callees():
    assert checked_callee("my.function_2") == "my.function_2"
    for wrong in ("", "2f", "a-b", "a\n", "x" * 121, None):
        with pytest.raises(UserError, match="is not a name for a function"):
            checked_callee(wrong)
