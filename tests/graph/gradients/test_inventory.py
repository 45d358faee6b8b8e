"""The page of gradients lists every operator once, and says what the table says."""

from pathlib import Path

import refcomp
from refcomp.graph.gradients.inventory import to_markdown
from refcomp.graph.gradients.table import Differentiability, differentiability
from refcomp.topi.sources import OPERATOR_HOMES

_PAGE = Path(refcomp.__file__).parent / "graph" / "GRADIENTS.md"


def test_the_page_in_the_documentation_is_up_to_date(request) -> None:
    page = to_markdown()
    if request.config.getoption("--update-golden"):
        _PAGE.write_text(page, encoding="utf-8")
    assert _PAGE.read_text(encoding="utf-8") == page, "if that is right: pytest --update-golden"


def test_every_operator_is_in_the_table_of_families_once() -> None:
    families = to_markdown().partition("## By family")[2].partition("## Reasons")[0]
    assert [name for name in OPERATOR_HOMES if families.count(f"`{name}`") != 1] == []


def test_counts_add_up_to_all_operators() -> None:
    page = to_markdown()
    counts = {}
    for kind in Differentiability:
        (line,) = [
            one for one in page.splitlines() if one.startswith(f"| {kind} | ") and one[-3].isdigit()
        ]
        counts[kind] = int(line.split("|")[2])
    assert sum(counts.values()) == len(OPERATOR_HOMES)
    rules = [name for name in OPERATOR_HOMES if differentiability(name).kind == "rule"]
    assert counts[Differentiability.RULE] == len(rules)
