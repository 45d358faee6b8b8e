"""The programs of scripts/walkthroughs, for tests that use their schedules."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "scripts" / "walkthroughs"


def walkthrough(name: str) -> dict[str, Any]:
    """Return the names that a walkthrough defines. They import each other from their folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return runpy.run_path(str(FOLDER / f"{name}.py"))
