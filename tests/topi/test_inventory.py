"""The inventory of operators tells what their declarations say."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.inventory import InventoryEntry, inventory, page_of, to_markdown
from refcomp.topi.sources import OPERATOR_HOMES


def test_every_operator_is_listed_with_a_sentence() -> None:
    found = inventory()
    assert [entry.name for entry in found] == list(OPERATOR_HOMES)
    assert all(len(entry.summary) > 10 and entry.summary.endswith(".") for entry in found)


def test_what_may_be_left_out_is_in_brackets() -> None:
    found = {entry.name: entry for entry in inventory()}
    assert found["conv2d"].inputs == ("data", "weight", "[bias]")
    assert found["concatenate"].inputs[-1].endswith("...")
    assert found["softmax"] == InventoryEntry(
        name="softmax",
        family="normalization",
        inputs=("data",),
        attributes=("[axis]",),
        summary="Return exp(x - m) / sum of exp(x - m) along `axis`, where m is the maximum "
        "along it.",
    )


def test_a_page_has_a_table_for_each_family() -> None:
    page = to_markdown([entry for entry in inventory() if entry.name in ("relu", "softmax")])
    assert "## elementwise: Operators of one tensor that work element by element.\n" in page
    assert "| `relu` | `data` |  | Return max(x, 0) for each element x" in page
    assert page.count("| operator | inputs |") == 2


def test_unknown_operator_is_refused() -> None:
    with pytest.raises(UserError, match="unknown operator 'softmx'") as info:
        page_of("softmx")
    assert "softmax" in info.value.remedy
