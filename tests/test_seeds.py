"""Each seeded bug changes one line that is really there; the searches that run them take long."""

import inspect
from importlib import import_module
from operator import attrgetter
from textwrap import dedent

import pytest

from tests.properties.device_seeded_bugs import DEVICE
from tests.properties.seeded_bugs import COMPILED, INTERPRETED, SeededBug

BUGS = (*INTERPRETED, *COMPILED, *DEVICE)


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_the_line_of_a_seed_is_in_its_function_once(bug: SeededBug) -> None:
    function = inspect.unwrap(attrgetter(bug.function)(import_module(bug.module)))
    text = dedent(inspect.getsource(function))
    assert text.count(bug.right) == 1
    assert text.replace(bug.right, bug.wrong) != text
