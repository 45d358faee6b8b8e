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


# What these make is known when the model is compiled for the shapes and elements of a run, or is
# moved by the executor: strings, sequences, optionals and images. All else is for kernels.
WITHOUT_KERNELS = {
    "Constant",
    "ConstantOfShape",
    "Shape",
    "Size",
    "Reshape",
    "Expand",
    "Identity",
    "If",
    "ImageDecoder",
    "RegexFullMatch",
    "StringConcat",
    "StringSplit",
    "StringNormalizer",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceAt",
    "SequenceInsert",
    "SequenceErase",
    "SequenceLength",
    "SequenceMap",
    "SplitToSequence",
    "ConcatFromSequence",
    "Range",
    "EyeLike",
    "Dropout",
}


@pytest.mark.llvm
@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    case = suite()[name]
    if name in EXPECTED["failures"]:
        with pytest.raises(Exception):  # noqa: B017  (the reason is in failures.toml)
            judge(case)
        return
    launches = judge(case)
    assert launches > 0 or case.operators <= WITHOUT_KERNELS, "no kernel has computed it"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES[::STEP])
def test_case_on_device(name: str, device: str) -> None:
    if name not in EXPECTED["failures"]:
        judge(suite()[name], device)
