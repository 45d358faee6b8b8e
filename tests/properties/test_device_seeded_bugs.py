"""The interpreter finds bugs in what the compiler makes for GPUs: each one of a list, alone."""

import pytest

from refcomp.foundation.errors import CompilerBug
from tests.properties.device_differential import check_program
from tests.properties.device_seeded_bugs import DEVICE
from tests.properties.hunt import is_found
from tests.properties.seeded_bugs import switched_on
from tests.properties.targets import device_cases


def _check(computation, schedule):
    """As `check_program`, but what verify sees is no merit of the interpreter's."""
    try:
        check_program(computation, schedule)
    except CompilerBug:
        return


@pytest.mark.parametrize("bug", DEVICE, ids=lambda bug: bug.name)
def test_the_interpreter_finds(bug):
    with switched_on(bug):
        found = is_found(_check, 600, device_cases(bug.kinds, bug.dtypes))
    assert found, f"{bug.name} goes unseen"


def test_there_are_many_and_they_differ():
    assert len({(bug.module, bug.function, bug.right) for bug in DEVICE}) >= 15
    assert len({bug.name for bug in DEVICE}) == len(DEVICE)


def test_without_a_bug_nothing_is_found():
    assert not is_found(check_program, 40, device_cases())
