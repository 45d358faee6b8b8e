"""The search looks at three programs when all is right, and names the first guilty step else."""

import pytest

import refcomp as rc
from refcomp.certificates.arguments import Arguments
from refcomp.certificates.judge import judge_of_tensors
from refcomp.certificates.search import Search
from refcomp.certificates.versions import versions
from tests.properties.seeded_bugs import INTERPRETED, switched_on


def _search(kind="llvm"):
    a = rc.placeholder((7,), name="A")
    b = rc.compute((7,), lambda i: a[i] * 3 + 1, name="B")
    s = rc.create_schedule(b)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    s[b].vectorize(inner)
    s[b].parallel(outer)
    args, compared = (a, b), []
    judge = judge_of_tensors(Arguments(args, {}))

    def lower_again(schedule):
        return rc.lower(schedule, args)

    made = list(versions(lower_again(s), kind))
    return Search(made, kind, judge, compared, s, lower_again)


def test_the_first_and_the_last_are_enough_when_they_agree():
    search = _search()
    assert search.find(every_step=False) is None
    assert search.compared == ["the first program", "the last program, of outline_parallel"]


def test_every_step_names_each_primitive_and_each_pass():
    search = _search()
    assert search.find(every_step=True) is None
    assert search.compared[2:5] == [
        "the program as lowered by default",
        "s[B].split(i, factor=4)",
        "s[B].vectorize(i.inner)",
    ]
    assert search.compared[-1] == "outline_parallel"


@pytest.mark.search
@pytest.mark.parametrize(
    ("bug", "guilty"),
    [
        ("lost tail guard", "s[B].split(i, factor=4), at "),
        ("vectors one lane short", "pass vectorize_loops"),
        ("last iterations of a parallel loop lost", "pass outline_parallel"),
    ],
)
@pytest.mark.parametrize("every_step", [False, True])
def test_the_first_guilty_step_is_named(bug, guilty, every_step):
    (seeded,) = [known for known in INTERPRETED if known.name == bug]
    with switched_on(seeded):
        found = _search().find(every_step)
    assert found is not None and found[0].startswith(guilty)
