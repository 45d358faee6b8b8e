"""Edited templates, built and run. A wrong pool of threads may hang its process."""

import json
import subprocess
import sys

import pytest

from refcomp.foundation.errors import CompilerBug
from refcomp.mutate.child import Outcome
from refcomp.mutate.mutant import COMPARISONS, OURS
from refcomp.mutate.templates import check_right

_SAMPLE = """
import json, sys
from refcomp.mutate.templates import score_templates
from refcomp.mutate.operations import operations
target, count, without, *names = sys.argv[1:]
chosen = [one for one in operations(target) if not names or one.name in names]
for m in score_templates(target, int(count), 2, chosen, without.split()):
    print(json.dumps([m.is_wrong, sorted(m.killed_by), m.equivalent, m.stillborn, str(m)]))
"""


# Neither kernels nor a host's computations without parallel loops use what these print.
_CALLS = ("threads.j2", "threads.toml", "joined_calls.j2", "linked_description.j2")


def _sample(target, count, *names, without=()):
    command = [sys.executable, "-c", _SAMPLE, target, str(count), " ".join(without), *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _judged(found, least, record_property, target):
    wrong = [(noticed, text) for is_wrong, noticed, _, _, text in found if is_wrong]
    shares = {p: 100 * sum(p in noticed for noticed, _ in wrong) / len(wrong) for p in COMPARISONS}
    assert len(wrong) >= least
    assert shares[OURS] >= 95, wrong
    told = ", ".join(f"{share:.1f} % by {policy}" for policy, share in shares.items())
    record_property(
        "summary",
        f"{len(found)} edits of the templates of {target}, {len(wrong)} of them make wrong code; "
        f"noticed: {told}",
    )


@pytest.mark.llvm
def test_a_sample_of_the_host_is_noticed(request, record_property):
    if request.config.getoption("--nightly"):
        _judged(_sample("llvm", 400), 100, record_property, "llvm")
    else:
        names = ("i32", "f32", "product", "temporaries", "no memory")
        _judged(_sample("llvm", 36, *names, without=_CALLS), 8, record_property, "llvm")


@pytest.mark.pocl
def test_a_sample_of_opencl_is_noticed(request, record_property):
    if request.config.getoption("--nightly"):
        _judged(_sample("opencl", 150), 40, record_property, "opencl")
    else:
        _judged(_sample("opencl", 4, "i32"), 1, record_property, "opencl")


@pytest.mark.gcc
def test_a_sample_of_cuda_is_noticed(request, record_property):
    if request.config.getoption("--nightly"):
        _judged(_sample("cuda", 300), 60, record_property, "cuda")
    else:
        _judged(_sample("cuda", 20, "i32", "tiled transpose"), 3, record_property, "cuda")


@pytest.mark.rocm
def test_a_sample_of_the_templates_of_amd_gpus_is_noticed(request, record_property):
    if request.config.getoption("--nightly"):
        _judged(_sample("amdgpu", 200, without=_CALLS), 40, record_property, "amdgpu")
    else:
        names = ("i32", "tiled transpose")
        found = _sample("amdgpu", 24, *names, without=_CALLS)
        _judged(found, 2, record_property, "amdgpu")


# What is asked of each edit, by a part of its text.
_WRONG = (
    "opcode.Sub.int: 'sub'  ->  'add'",
    "opcode.LT.int: 'icmp slt'  ->  'icmp sle'",
    "_quotient_signed: {{ result }}.negated = sub {{ type }} {{ zero }}, {{ a }}  ->",
    "loop: {{ variable }}.next = add {{ type }} {{ variable }}, 1  ->",
)
_SAME = {
    "put_slot: store {{ type }}": "the same texts",
    "declare_regions: declare i32 @pthread_detach(i64) #0  ->": "the same bits",
    "region_call: %region.{{ id }}.alone = icmp eq i32 %num_threads, 1  ->": "the same bits",
}
_REFUSED = "opcode.Mul.float: 'fmul'  ->  'mul'"
_UNREAD_FREE = "declare_heap: declare void @free(ptr) #0  ->"  # so that it may be left out
_LEAK = "heap_array: call void @free(ptr {{ name }})  ->  nothing"
_SILENT = "fail: store i32 1, ptr %status, align 4  ->  nothing"
_ASKED = (*_WRONG, *_SAME, _REFUSED, _UNREAD_FREE, _LEAK, _SILENT)
_EACH = """
import json, sys
from functools import partial
from pathlib import Path
from refcomp.mutate.child import run_in_child
from refcomp.mutate.templates import check_right, TemplateTrial
from refcomp.mutate.mutant import mutant_of
from refcomp.mutate.outputs import HostOutput
from refcomp.mutate.operations import operations
from refcomp.mutate.expected_results import ExpectedResults
from refcomp.mutate.spellings import spelling_edits

folder, *asked = sys.argv[1:]
output = HostOutput(Path(folder))
names = ("i32", "f32", "temporaries", "no memory")
right = [ExpectedResults(one) for one in operations("llvm") if one.name in names]
texts = output.print_right([one.func for one in right])
trial = TemplateTrial(output, tuple(zip(right, texts, strict=True)))
check_right(run_in_child(trial.run_right, 200))
edits = list(spelling_edits("llvm"))
for text in asked:
    edit = next(edit for edit in edits if text in str(edit))
    m = mutant_of("llvm", edit, "it", run_in_child(partial(trial.run, edit), 100))
    print(json.dumps([sorted(m.killed_by), m.symptom, m.equivalent, m.stillborn]))
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """For each of _ASKED: by whom it is noticed, why, and why it is no wrong code."""
    command = [sys.executable, "-c", _EACH, str(tmp_path_factory.mktemp("code")), *_ASKED]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(_ASKED, found, strict=True))


@pytest.mark.llvm
@pytest.mark.parametrize("edit", _WRONG)
def test_wrong_code_is_noticed(tried, edit):
    noticed, told, equivalent, refused = tried[edit]
    assert OURS in noticed and told and not equivalent and not refused


@pytest.mark.llvm
@pytest.mark.parametrize("edit", _SAME)
def test_what_changes_nothing(tried, edit):
    noticed, _, equivalent, _ = tried[edit]
    assert equivalent.startswith(_SAME[edit]) and OURS not in noticed


@pytest.mark.llvm
def test_what_no_tool_takes(tried):
    assert tried[_REFUSED] == [[], "", "", "no tool takes it (ToolchainError)"]


@pytest.mark.llvm
def test_memory_that_is_kept_and_a_lack_that_is_not_said_are_noticed(tried):
    assert tried[_UNREAD_FREE][:2] == tried[_LEAK][:2] == [[OURS], "it keeps memory"]
    assert OURS in tried[_SILENT][0]


def test_the_right_programs_are_held_to_the_same_comparisons():
    check_right(Outcome(("right",)))
    for outcome in (Outcome(({"error": "x"},)), Outcome((), "did not end")):
        with pytest.raises(CompilerBug, match="a comparison kills right programs"):
            check_right(outcome)
