"""MIGRATION.md is what the table, the refusals and the tutorials say."""

from pathlib import Path

import refcomp
from refcomp.classic.page import WIDTH, migration_page
from refcomp.classic.programs import read_differences, read_refusals, read_tutorials
from refcomp.classic.table import read_areas

PAGE = Path(refcomp.__file__).parent / "classic" / "MIGRATION.md"


def test_the_page_is_current(request) -> None:
    page = migration_page()
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "if that is right: pytest --update-golden"


def test_every_name_is_on_the_page() -> None:
    page = migration_page()
    for entry in (entry for area in read_areas() for entry in area.names):
        assert f"`{entry.name}`" in page


def test_a_note_says_where_to_look() -> None:
    page = migration_page()
    assert "\n- `tvm.div`: see `rc.truncdiv`. It rounds towards zero" in page
    assert "\n- `Module.save`: It writes what the suffix says" in page
    assert "\n- `tvm.load_json` is absent: write `refcomp.parse_func(text)`" in page


def test_operators_with_classic_arguments_say_what_to_write() -> None:
    page = migration_page()
    assert "\n- `topi.nn.pool`: `max_pool2d(x, kernel=(2, 2)" in page
    assert "\nUnchanged, but `rc.topi` takes attributes by keyword: `topi.cast`, " in page


def test_a_text_may_have_several_paragraphs() -> None:
    page = migration_page()
    assert "\n\nThe classes of `tvm.expr` and `tvm.stmt` are for `isinstance`." in page


def test_every_program_is_on_the_page() -> None:
    page = migration_page()
    for difference in read_differences():
        assert f"```python\n{difference.program.strip()}\n```\n" in page
    for refusal in read_refusals():
        assert f"### {refusal.title}\n\n```python\n{refusal.program.strip()}\n```\n" in page
        assert f"{refusal.error}: {refusal.what[:40]}" in page
    for step in (step for tutorial in read_tutorials() for step in tutorial.steps):
        assert f"```text\n{step.classic.strip()}\n```\n\n</td><td>" in page
        assert f"```python\n{step.refcomp.strip()}\n```\n\n</td></tr>" in page


def test_lines_are_of_readable_length() -> None:
    assert [line for line in migration_page().splitlines() if len(line) > WIDTH] == []
