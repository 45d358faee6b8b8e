"""The table of files: each defines the names that it lists, and registers the operators."""

import subprocess
import sys
from pathlib import Path

import pytest

from refcomp import topi
from refcomp.topi.operator import find_operator, operator_names
from refcomp.topi.sources import OPERATOR_HOMES, SCHEDULE_HOMES


@pytest.mark.parametrize("name", OPERATOR_HOMES)
def test_operator_is_registered_by_its_file(name):
    assert find_operator(name).compute is getattr(topi, name)
    assert getattr(topi, name).__module__ == OPERATOR_HOMES[name]


@pytest.mark.parametrize("name", SCHEDULE_HOMES)
def test_schedule_is_defined_in_its_file(name):
    assert getattr(topi, name).__module__ == SCHEDULE_HOMES[name]


def test_no_folder_has_the_name_of_an_operator() -> None:
    """Else importing the folder would replace the operator in `rc.topi`."""
    wings = {path.name for path in Path(topi.__file__).parent.iterdir()}
    assert not wings & set(OPERATOR_HOMES)


def test_each_operator_of_topi_is_listed() -> None:
    assert all(
        name in OPERATOR_HOMES
        for name in operator_names()
        if find_operator(name).compute.__module__.startswith("refcomp.topi.")
    )


def test_an_operator_imports_no_other_family() -> None:
    program = "import sys, refcomp.topi; refcomp.topi.relu; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    modules = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "refcomp.topi.elementwise.activations" in modules
    assert "refcomp.topi.convolution.conv2d" not in modules
