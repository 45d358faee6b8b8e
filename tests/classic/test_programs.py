"""Programs of the migration page: refusals with their messages, tutorials of both columns."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic.page import migration_page
from refcomp.classic.programs import (
    ChangedMeaning,
    Refusal,
    Tutorial,
    read_differences,
    read_refusals,
    read_tutorials,
)
from refcomp.foundation import errors
from refcomp.oracle import InterpretError

_ERRORS = vars(errors) | {"InterpretError": InterpretError}
TUTORIALS = [
    pytest.param(
        tutorial, id=tutorial.title, marks=[getattr(pytest.mark, m) for m in tutorial.marks]
    )
    for tutorial in read_tutorials()
]
# The imports of classic programs, and what the page says to write instead.
IMPORTS = {
    "import tvm": "from refcomp import classic as tvm",
    "import topi": "from refcomp.classic import topi",
    "import nnvm": "from refcomp.classic import nnvm",
    "import nnvm.compiler": "from refcomp.classic import nnvm",
    "from tvm.contrib import graph_runtime": ("from refcomp.classic.contrib import graph_runtime"),
}
REFUSALS = [pytest.param(refusal, id=refusal.title) for refusal in read_refusals()]


def run(program: str, path: Path, **names: object) -> None:
    """Run a program from a file, because hybrid functions read their source."""
    path.write_text(program, encoding="utf-8")
    runpy.run_path(str(path), init_globals=names)


@pytest.mark.parametrize("difference", read_differences(), ids=lambda one: one.text[:30])
def test_a_difference_is_as_the_page_says(difference: ChangedMeaning, tmp_path: Path) -> None:
    run(difference.program, tmp_path / "difference.py", rc=rc, np=np)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_program_is_refused_with_the_message_of_the_page(
    refusal: Refusal, tmp_path: Path
) -> None:
    with pytest.raises(_ERRORS[refusal.error]) as info:
        run(refusal.program, tmp_path / "refused.py", rc=rc, np=np)
    error = info.value
    assert (error.what, error.why or "", error.remedy or "") == (
        refusal.what,
        refusal.why,
        refusal.remedy,
    )


@pytest.mark.parametrize("refusal", REFUSALS)
def test_only_the_last_line_of_a_program_is_refused(refusal: Refusal, tmp_path: Path) -> None:
    lines = refusal.program.strip().splitlines()
    run("\n".join(lines[:-1]), tmp_path / "accepted.py", rc=rc, np=np)


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_a_ported_tutorial_runs(tutorial: Tutorial, tmp_path: Path) -> None:
    run(tutorial.refcomp, tmp_path / "ported.py")


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_a_classic_tutorial_runs_once_its_imports_are_changed(
    tutorial: Tutorial, tmp_path: Path
) -> None:
    lines = [IMPORTS.get(line, line) for line in tutorial.classic.splitlines()]
    assert IMPORTS["import tvm"] in lines
    assert not [line for line in lines if re.match(r"(import|from) (tvm|topi|nnvm)", line)]
    run("\n".join(lines), tmp_path / "classic.py")


def test_the_page_says_how_imports_change(tmp_path: Path) -> None:
    page = " ".join(migration_page().split())
    for before, after in IMPORTS.items():
        assert f"`{before}`" in page and f"| `{after}` |" in page
        run(after, tmp_path / "imports.py")


def test_the_programs_are_narrow_enough_for_two_columns() -> None:
    steps = [step for tutorial in read_tutorials() for step in tutorial.steps]
    lines = [line for step in steps for line in (step.classic + step.refcomp).splitlines()]
    assert len(read_tutorials()) >= 3
    assert [line for line in lines if len(line) > 76] == []
