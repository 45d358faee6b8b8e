"""The texts of translated instructions: holes that are filled, and fields that are loaded."""

import re

import pytest

from refcomp.emulator.ptx.translation.texts import (
    FIELDS,
    NUMBER_OF,
    expanded,
    filled,
    frame,
    module_head,
    rows,
)


def test_holes_are_filled_and_other_braces_stay():
    assert filled("{r} = add {t} {a}, {b}", r="%v", t="i32", a="1", b="2") == "%v = add i32 1, 2"
    assert filled("{i32, i32}") == "{i32, i32}"


def test_fields_are_loaded_from_the_context():
    at = NUMBER_OF["base"]
    assert expanded("  %x = field base\n") == (
        f"  %x.at = getelementptr i64, ptr %ctx, i64 {at}\n  %x = load i64, ptr %x.at\n"
    )
    assert expanded("  %x = address base\n") == (f"  %x = getelementptr i64, ptr %ctx, i64 {at}\n")


@pytest.mark.parametrize("is_watched", [True, False])
def test_the_head_has_no_holes_and_knows_its_fields(is_watched):
    head = module_head(is_watched)
    assert "$" not in head and " = field " not in head
    assert ("known.from" in head) == is_watched


def test_each_row_has_a_result_or_is_its_source():
    for name, text in rows("value").items():
        assert text == "{a}" or re.search(r"^\{r\} = ", text, re.MULTILINE), name
    assert set(frame("warps")["lane"]) == set(frame("warps")["compare"])
    assert len(FIELDS) == len(NUMBER_OF)
