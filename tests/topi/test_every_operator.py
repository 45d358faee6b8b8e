"""Every operator of the registry, on every kind of target: samples, judged by derived bounds.

With --nightly, the interpreter runs 500 samples of each operator, the host 160, and OpenCL and each
emulated GPU 80. By day they run 8, 4 and 1. Then OpenCL runs each operator, the two AMD GPUs every
other one in turn, and the emulated NVIDIA GPU each tenth.
"""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refcomp.topi.operator import find_operator
from refcomp.topi.sources import OPERATOR_HOMES
from tests.samples import sample_count
from tests.topi.agreement import WAYS, check_on, make_case

pytestmark = pytest.mark.search
NAMES = sorted(OPERATOR_HOMES)
seeds = st.integers(0, 2**20)
# A smaller seed is no simpler sample, so nothing is gained by shrinking.
unshrunk = settings(phases=[Phase.generate])
# They are built as one module, which takes little longer than one of them.
_SEVERAL = sample_count(by_day=1, nightly=4)
several = st.lists(seeds, min_size=_SEVERAL, max_size=_SEVERAL, unique=True)
_MANY = sample_count(by_day=4, nightly=8)
many = st.lists(seeds, min_size=_MANY, max_size=_MANY, unique=True)


def test_every_operator_has_samples() -> None:
    assert [name for name in NAMES if find_operator(name).sample is None] == []


@pytest.mark.parametrize("name", NAMES)
@settings(unshrunk, max_examples=sample_count(by_day=8, nightly=500))
@given(seeds)
def test_meaning_and_interpreter_agree_with_the_compute(name, seed):
    check_on(WAYS["interp"], [make_case(find_operator(name), seed)])


@pytest.mark.llvm
@pytest.mark.parametrize("name", NAMES)
@settings(unshrunk, max_examples=sample_count(by_day=1, nightly=20))
@given(many)
def test_host_agrees(name, drawn):
    check_on(WAYS["llvm"], [make_case(find_operator(name), seed) for seed in drawn])


_AMD_GPUS = ("gfx942", "gfx1100")
_AMD_STEP = sample_count(by_day=2, nightly=1)


def _on_gpus(names):
    """Yield operators and GPUs.

    Those of an operator are neighbours: they share its samples, legal results and loop IR.
    """
    for number, name in enumerate(names):
        yield pytest.param(name, "opencl", marks=pytest.mark.pocl)
        for gpu in _AMD_GPUS[number % _AMD_STEP :: _AMD_STEP]:
            yield pytest.param(name, gpu, marks=pytest.mark.rocm)


# In two halves: hypothesis nests the settings of a function once more for each of its cases, and
# ends in a RecursionError beyond some 950.
_HALF = len(NAMES) // 2


@pytest.mark.parametrize(("name", "gpu"), _on_gpus(NAMES[:_HALF]))
@settings(unshrunk, max_examples=sample_count(by_day=1, nightly=20))
@given(several)
def test_gpus_agree(name, gpu, drawn):
    check_on(WAYS[gpu], [make_case(find_operator(name), seed) for seed in drawn])


@pytest.mark.parametrize(("name", "gpu"), _on_gpus(NAMES[_HALF:]))
@settings(unshrunk, max_examples=sample_count(by_day=1, nightly=20))
@given(several)
def test_gpus_agree_on_the_other_operators(name, gpu, drawn):
    check_on(WAYS[gpu], [make_case(find_operator(name), seed) for seed in drawn])


@pytest.mark.llvm
@pytest.mark.parametrize("name", NAMES[:: sample_count(by_day=10, nightly=1)])
@settings(unshrunk, max_examples=sample_count(by_day=1, nightly=20))
@given(st.lists(seeds, min_size=1, max_size=4, unique=True))
def test_emulated_nvidia_gpu_agrees(name, drawn):
    check_on(WAYS["sm_90"], [make_case(find_operator(name), seed) for seed in drawn])
