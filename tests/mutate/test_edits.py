"""Each kind of edit on a function where it applies, and what an edited function does."""

import importlib.util

import pytest

from refcomp.mutate.edits import edits_of

_TEXT = '''
"""A module."""
from functools import cache


def clamp(value, low, high=10):
    """Within low and high."""
    if value < low:
        return low
    return min(value, high) if value - low > 1 and value != 7 else value


@cache
def squares(count: int, *, start=1):
    found = {}
    for k in range(start, count):
        found[k] = k * k
        found[-1] = 0
    if not found:
        raise ValueError("none, though 1 + 1 are asked for")
    return [k for k in reversed(found) if k >= 0], len(found)


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
        self.both = True

    @property
    def ends(self):
        return self.a, self.b

    @staticmethod
    def zero():
        return Pair(0, 1)


def rounded(x):
    return -math.floor(x * 0.5)
'''


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text(_TEXT, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("edited", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("operator flipped", "value < low  ->  value >= low"),
        ("operator flipped", "value - low  ->  value + low"),
        ("operator flipped", "value - low > 1 and value != 7  ->  value - low > 1 or value != 7"),
        ("comparison off by one", "value < low  ->  value <= low"),
        ("operands exchanged", "value - low  ->  low - value"),
        ("name exchanged", "min  ->  max"),
        ("name exchanged", "reversed  ->  tuple"),
        ("name exchanged", "math.floor  ->  math.ceil"),
        ("constant slightly wrong", "0.5  ->  0.50005"),
        ("operator flipped", "-math.floor(x * 0.5)  ->  +math.floor(x * 0.5)"),
        ("arguments exchanged", "min(value, high)  ->  min(high, value)"),
        ("arguments exchanged", "range(start, count)  ->  range(count, start)"),
        ("items exchanged", "(self.a, self.b)  ->  (self.b, self.a)"),
        ("constant shifted", "7  ->  8"),
        ("constant shifted", "True  ->  False"),
        ("condition negated", "value < low  ->  not value < low"),
        ("condition dropped", "value < low  ->  True"),
        ("condition dropped", "for ... if k >= 0  ->  for ..."),
        ("statement dropped", "found[k] = k * k  ->  nothing"),
        ("statement dropped", "self.both = True  ->  nothing"),
    ],
)
def test_what_is_changed(module, kind, change):
    assert change in [edit.change for edit in edits_of(module) if edit.operator == kind]


def test_what_is_left_alone(module):
    changes = [edit.change for edit in edits_of(module)]
    assert not any("10" in change or "asked" in change or "Within" in change for change in changes)
    assert not any("found = {}" in change for change in changes)


def _edit(module, change):
    (edit,) = [e for e in edits_of(module) if e.change == change]
    return edit


def test_an_edited_function_does_something_else_until_it_has_its_code_back(module):
    edit = _edit(module, "value < low  ->  value >= low")
    before, clamp = edit.function.__code__, module.clamp
    assert edit.function is clamp and str(edit).startswith("clamp, line 8: value < low")
    clamp.__code__ = edit.code()
    assert (clamp(0, 3), clamp(5, 3)) == (0, 3)
    clamp.__code__ = before
    assert (clamp(0, 3), clamp(5, 3)) == (3, 5)
    assert edit.change in [again.change for again in edits_of(module)]


@pytest.mark.parametrize(
    ("change", "call", "right", "wrong"),
    [
        ("reversed  ->  tuple", lambda m: m.squares(4)[0], [3, 2, 1], [1, 2, 3]),
        ("for ... if k >= 0  ->  for ...", lambda m: m.squares(3)[0], [2, 1], [2, -1, 1]),
        ("(self.a, self.b)  ->  (self.b, self.a)", lambda m: m.Pair(1, 2).ends, (1, 2), (2, 1)),
        ("Pair(0, 1)  ->  Pair(1, 0)", lambda m: m.Pair.zero().a, 0, 1),
    ],
)
def test_functions_behind_decorators_and_methods(module, change, call, right, wrong):
    edit = _edit(module, change)
    assert call(module) == right
    if hasattr(module.squares, "cache_clear"):
        module.squares.cache_clear()
    edit.function.__code__ = edit.code()
    assert call(module) == wrong


def test_every_edit_makes_code(module):
    edits = list(edits_of(module))
    assert len(edits) > 30
    assert all(edit.code().co_name == edit.function.__name__ for edit in edits)
