"""ONNX's backend suite, compiled for the host.

`names.txt` lists its cases, so that they are tests without reading the suite first. A case in
`failures.toml` must fail, for the reason that stands there. What a case computes at random by
design cannot be judged: it must run, and make outputs of the right types.

An expanded case has the body of a function in place of the plain case's node. By day each third
expanded case runs, with --nightly all do; plain cases always do.
"""

import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.suite import Case, cases, judge
from tests.samples import sample_count

FOLDER = Path(__file__).parent
NAMES = (FOLDER / "names.txt").read_text().split()
EXPANDED = [name for name in NAMES if "_expanded" in name]
LEFT_OUT = {*EXPANDED} - {*EXPANDED[:: sample_count(by_day=3, nightly=1)]}
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
# moved by the executor: strings, sequences, optionals and images. Or it is the input in another
# shape, which has the input's place in memory. All else is for kernels.
WITHOUT_KERNELS = {
    "Constant",
    "ConstantOfShape",
    "Shape",
    "Size",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
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

# What these make has the elements of the input in the same order, and so its place in memory. Small
# integers are stored as i8 or u8, the bounds are those of the dtype, and nothing is permuted or cut
# off. Other cases of these operators are for kernels.
WITHOUT_KERNELS_IN_CASES = {
    *(
        f"test_{cast}_{sign}INT{bits}_to_{sign}INT8{end}"
        for sign in ("", "U")
        for bits in (2, 4)
        for cast, end in (("cast", ""), ("castlike", ""), ("castlike", "_expanded"))
    ),
    "test_clip_default_int8_inbounds",
    "test_operator_index",
    # Loops whose bodies move elements of sequences.
    "test_sequence_map_extract_shapes_expanded",
    "test_sequence_map_identity_1_sequence_1_tensor_expanded",
    "test_sequence_map_identity_1_sequence_expanded",
    "test_sequence_map_identity_2_sequences_expanded",
    "test_transpose_all_permutations_0",
}


@pytest.mark.llvm
@pytest.mark.parametrize("name", [name for name in NAMES if name not in LEFT_OUT])
def test_case(name: str) -> None:
    case = suite()[name]
    if name in EXPECTED["failures"]:
        with pytest.raises(Exception):  # noqa: B017  (the reason is in failures.toml)
            judge(case)
        return
    launches = judge(case)
    is_moved = case.operators <= WITHOUT_KERNELS or name in WITHOUT_KERNELS_IN_CASES
    assert launches > 0 or is_moved, "no kernel has computed it"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES[::STEP])
def test_case_on_device(name: str, device: str) -> None:
    if name not in EXPECTED["failures"]:
        judge(suite()[name], device)
