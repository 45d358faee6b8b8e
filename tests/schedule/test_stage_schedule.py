"""The manual pages of the primitives: each example runs and gives the loops that its page shows."""

import inspect
import re
import textwrap

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.schedule.primitives.table import PRIMITIVES, REPLAYED
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.schedule.stage_schedule import StageGroup, StageSchedule
from refcomp.te.operation import PlaceholderOp

SECTION = re.compile(r"(?m)^(?P<title>\w+)::\n\n(?P<text>(?:    .*\n|\n)+)")


def page_of(primitive: str) -> str:
    owner = StageSchedule if hasattr(StageSchedule, primitive) else Schedule
    return inspect.getdoc(getattr(owner, primitive)) + "\n"


def sections_of(page: str) -> dict[str, str]:
    found = {match["title"]: match["text"] for match in SECTION.finditer(page)}
    return {title: textwrap.dedent(text).strip() for title, text in found.items()}


def loops_of(schedule: Schedule) -> str:
    given = [stage.op for stage in schedule.stages if isinstance(stage.op, PlaceholderOp)]
    args = [tensor for op in (*given, *schedule.outputs) for tensor in op.outputs]
    body = rc.print_func(rc.lower(schedule, args, "example")).splitlines()[1:-1]
    return textwrap.dedent("\n".join(body))


@pytest.mark.parametrize("primitive", REPLAYED)
def test_example_of_a_page_gives_the_loops_that_it_shows(primitive: str) -> None:
    sections = sections_of(page_of(primitive))
    assert list(sections) == ["Example", "Before", "After"]
    names = {"rc": rc}
    exec(sections["Example"], names)  # noqa: S102 (a docstring of the package)
    schedule = names["s"]
    assert primitive in [step.primitive for step in schedule.steps]
    assert loops_of(create_schedule(list(schedule.outputs))) == sections["Before"]
    assert loops_of(schedule) == sections["After"]


@pytest.mark.parametrize("primitive", REPLAYED)
def test_page_explains_each_argument_and_error(primitive: str) -> None:
    page = page_of(primitive)
    owner = StageSchedule if hasattr(StageSchedule, primitive) else Schedule
    parameters = list(inspect.signature(getattr(owner, primitive)).parameters)[1:]
    for name in parameters:
        assert re.search(rf"(?m)^    \*?{name}: ", page), name
    assert ("Raises:" in page) == (primitive != "compute_root")


def test_public_methods_are_the_primitives() -> None:
    own = {name for name in vars(StageSchedule) if name[0] != "_"}
    assert own - {"op", "leaf_iter_vars", "schedule", "stage"} <= set(PRIMITIVES)


def test_prefetch_of_something_else_than_a_tensor_is_refused() -> None:
    A = rc.placeholder((4,), name="A")
    B = rc.compute((4,), lambda i: A[i], name="B")
    s = rc.create_schedule(B)
    with pytest.raises(UserError, match="cannot prefetch 'A': it is not a tensor"):
        s[B].prefetch("A", B.op.axis[0], 1)


def test_group_moves_all_its_stages() -> None:
    A = rc.placeholder((4,), name="A")
    B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = rc.compute((4,), lambda i: B[i] * 2.0, name="C")
    D = rc.compute((4,), lambda i: C[i] - 1.0, name="D")
    s = rc.create_schedule(D)
    group = s.create_group([C], [B], include_inputs=True)
    assert isinstance(group, StageGroup)
    assert [stage.name for stage in group.stages] == ["B", "C"]
    group.compute_at(s[D], D.op.axis[0])
    assert [step.primitive for step in s.steps] == ["create_group", *["compute_at"] * 2]
    group.compute_root()
    assert loops_of(s) == loops_of(rc.create_schedule(D))
