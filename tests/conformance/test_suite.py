"""ONNX's backend suite, compiled for the host.

`names.txt` lists its cases, so that they are tests without reading the suite first. A case in
`failures.toml` must fail, for the reason that stands there. What a case computes at random by
design cannot be judged: it must run, and make outputs of the right types.
"""

import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.suite import Case, cases, judge

FOLDER = Path(__file__).parent
NAMES = (FOLDER / "names.txt").read_text().split()
EXPECTED = tomllib.loads((FOLDER / "failures.toml").read_text())
DEVICES = [
    pytest.param("OPENCL", marks=pytest.mark.pocl),
    pytest.param("EMULATOR:gfx942", marks=pytest.mark.rocm),
    pytest.param("EMULATOR:gfx1100", marks=pytest.mark.rocm),
]
# Every so many cases are run on the devices above. The whole is run by hand (see suite.py).
STEP = 67


@cache
def suite() -> dict[str, Case]:
    return {case.name: case for case in cases()}


def test_the_names_are_those_of_the_suite() -> None:
    assert sorted(suite()) == NAMES, (
        "python -m tests.conformance.suite . --list tests/conformance/names.txt"
    )


def test_each_expected_failure_is_a_case_and_has_a_reason() -> None:
    known = set(NAMES)
    for name, reason in EXPECTED["failures"].items():
        assert name in known, name
        assert len(reason) > 20, name


@pytest.mark.llvm
@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    if name in EXPECTED["failures"]:
        with pytest.raises(Exception):  # noqa: B017  (the reason is in failures.toml)
            judge(suite()[name])
        return
    judge(suite()[name])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES[::STEP])
def test_case_on_device(name: str, device: str) -> None:
    if name not in EXPECTED["failures"]:
        judge(suite()[name], device)
