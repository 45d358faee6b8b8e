"""Edited templates, built and run. In processes of their own: others have used libgomp here."""

import json
import subprocess
import sys
from functools import partial

import pytest

from refcomp.errors import CompilerBug
from refcomp.mutate.child import Outcome, run_in_child
from refcomp.mutate.machine import _check, _mutant, _Trial
from refcomp.mutate.mutant import OURS, POLICIES
from refcomp.mutate.outputs import HostOutput
from refcomp.mutate.spellings import spelling_edits
from tests.mutate.test_right_results import right_results

_SAMPLE = """
import json, sys
from refcomp.mutate.machine import score_spelling
from refcomp.mutate.operations import operations
target, count, *names = sys.argv[1:]
chosen = [one for one in operations(target) if not names or one.name in names]
for m in score_spelling(target, int(count), 2, chosen):
    print(json.dumps([m.is_wrong, sorted(m.noticed), m.equivalent, m.refused, str(m)]))
"""


def _sample(target, count, *names):
    command = [sys.executable, "-c", _SAMPLE, target, str(count), *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _judged(found, least, record_property, target):
    wrong = [(noticed, text) for is_wrong, noticed, _, _, text in found if is_wrong]
    shares = {p: 100 * sum(p in noticed for noticed, _ in wrong) / len(wrong) for p in POLICIES}
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
        _judged(_sample("llvm", 30, *names), 8, record_property, "llvm")


@pytest.mark.pocl
def test_a_sample_of_opencl_is_noticed(request, record_property):
    if request.config.getoption("--nightly"):
        _judged(_sample("opencl", 150), 40, record_property, "opencl")
    else:
        _judged(_sample("opencl", 4, "i32"), 1, record_property, "opencl")


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    output = HostOutput(tmp_path_factory.mktemp("code"))
    right = right_results("i32", "f32", "temporaries", "no memory")
    texts = output.right_texts([one.func for one in right])
    return _Trial(output, tuple(zip(right, texts, strict=True)))


def _tried(trial, text):
    (edit, *_) = [edit for edit in spelling_edits("llvm") if text in str(edit)]
    return _mutant("llvm", edit, run_in_child(partial(trial.run, edit), 100))


@pytest.mark.llvm
@pytest.mark.parametrize(
    "edit",
    [
        "opcode.Sub.int: 'sub'  ->  'add'",
        "opcode.LT.int: 'icmp slt'  ->  'icmp sle'",
        "_quotient_signed: {{ result }}.negated = sub {{ type }} {{ zero }}, {{ a }}  ->",
        "loop: {{ variable }}.next = add {{ type }} {{ variable }}, 1  ->",
    ],
)
def test_wrong_code_is_noticed(trial, edit):
    mutant = _tried(trial, edit)
    assert mutant.is_wrong and OURS in mutant.noticed and mutant.told


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ("put_slot: store {{ type }}", "the same texts"),
        ("{{ result }}.below = and {{ bool }} {{ result }}.inexact, {{ result }}.differ  ->", ""),
        ("declare_regions: declare i32 @omp_get_num_threads() #0  ->", "the same machine code"),
    ],
)
def test_what_changes_nothing(trial, edit, reason):
    mutant = _tried(trial, edit)
    assert mutant.equivalent.startswith(reason) and bool(mutant.equivalent) != mutant.is_wrong


@pytest.mark.llvm
def test_what_no_tool_takes(trial):
    mutant = _tried(trial, "opcode.Mul.float: 'fmul'  ->  'mul'")
    assert mutant.refused == "no tool takes it (ToolchainError)" and not mutant.is_wrong


@pytest.mark.llvm
def test_memory_that_is_kept_and_a_lack_that_is_not_said_are_noticed_by_ours(trial):
    unread = _tried(trial, "declare_heap: declare void @free(ptr) #0  ->")  # which may be left out
    assert unread.noticed == {OURS}
    leak = _tried(trial, "heap_array: call void @free(ptr {{ name }})  ->  nothing")
    assert leak.noticed == {OURS} and leak.told == "it keeps memory"
    silent = _tried(trial, "fail: store i32 1, ptr %status, align 4  ->  nothing")
    assert OURS in silent.noticed


@pytest.mark.llvm
def test_the_right_programs_are_held_to_the_same_comparisons(trial, monkeypatch):
    _check(run_in_child(trial.run_right, 100))
    monkeypatch.setattr(type(trial.right[0][0]), "told", lambda *_: "other bits")
    with pytest.raises(CompilerBug, match="the right programs are told from themselves"):
        _check(run_in_child(trial.run_right, 100))


def test_how_a_child_ends():
    edit = next(spelling_edits("llvm"))
    early = _mutant("llvm", edit, Outcome((), "crashed by SIGABRT"))
    assert early.refused == "the printer fails (crashed by SIGABRT)"
    late = _mutant("llvm", edit, Outcome(({"subject": "i32"},), "crashed by SIGSEGV"))
    assert late.told == "crashed by SIGSEGV" and late.noticed == set(POLICIES)
    assert late.stage == "templates of llvm"
