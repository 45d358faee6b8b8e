"""The page of PTX's ledger says what agrees with a reference.

By day a sample of all forms runs, with --nightly or --update-golden all of them.
"""

from itertools import chain

import pytest

from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.rules import RULES
from refcomp.emulator.ptx.ledger import (
    FOLDER,
    PtxEntry,
    entries_of,
    name_of,
    not_compared_in,
    ptx_ledger_text,
    read_ptx_ledger,
)
from tests.emulator.ptx.formulas.cases import Case, check_cases
from tests.emulator.ptx.formulas.control_cases import control_cases
from tests.emulator.ptx.formulas.host_operations import check_operations
from tests.emulator.ptx.formulas.matrix_cases import matrix_cases
from tests.emulator.ptx.formulas.memory_cases import memory_cases
from tests.emulator.ptx.formulas.value_cases import value_cases
from tests.emulator.ptx.formulas.warp_cases import warp_cases
from tests.emulator.ptx.instructions.worded import instruction

# Of so many forms, or operations of LLVM IR, one runs by day.
_STEP_OF_FORMS = 12
_STEP_OF_OPERATIONS = 8
# Instructions, each with its types, that are compared at least.
_LEAST = 500


@pytest.fixture
def is_whole(request):
    """True if all forms run."""
    return request.config.getoption("--nightly") or request.config.getoption("--update-golden")


def _all_cases():
    return [*chain(value_cases(), warp_cases(), memory_cases(), matrix_cases(), control_cases())]


@pytest.mark.llvm
def test_forms_agree_with_the_formulas_of_the_isa(is_whole, request, record_property):
    cases = _all_cases()[:: 1 if is_whole else _STEP_OF_FORMS]
    outcome = check_cases(cases, blocks=2 if is_whole else 1)
    assert not outcome.wrong, "\n".join(outcome.wrong[:20])
    seen = dict(outcome.seen)
    if request.config.getoption("--update-golden"):
        seen["host"] = check_operations().seen
        (FOLDER / "ptx.md").write_text(ptx_ledger_text(entries_of(seen)), encoding="utf-8")
        read_ptx_ledger.cache_clear()
    assert not_compared_in(chain(*seen.values())) == ()
    record_property("summary", f"{len(cases)} forms of PTX agree with formulas")


@pytest.mark.llvm
def test_operations_agree_with_this_machine(is_whole, record_property):
    outcome = check_operations(1 if is_whole else _STEP_OF_OPERATIONS)
    assert not outcome.wrong, "\n".join(outcome.wrong[:20])
    compared = {entry.name for entry in read_ptx_ledger() if "host" in entry.modifiers}
    missing = {name_of(one) for one in outcome.seen} - compared
    assert not missing, f"{sorted(missing)} are not on the page; write it with --update-golden"
    record_property("summary", f"{outcome.count} operations of LLVM IR agree as PTX")


def test_page_lists_what_is_compared_with_nothing():
    """Each instruction that the emulator knows is in one of both lists."""
    entries = read_ptx_ledger()
    text = (FOLDER / "ptx.md").read_text(encoding="utf-8")
    assert text == ptx_ledger_text(entries)
    compared = [entry for entry in entries if entry.is_compared]
    assert len(compared) >= _LEAST
    names = [entry.name for entry in entries]
    assert names == sorted(set(names))


def test_entries_name_their_references():
    entries = {entry.name: entry for entry in read_ptx_ledger()}
    assert str(entries["add.f32"]).startswith("add.f32: host ")
    assert str(entries["brkpt"]) == "brkpt: not compared"
    assert entries["ex2.f32"].modifiers.keys() == {"bound"}
    assert str(PtxEntry("add.s32", {"formula": frozenset({"sat"})})) == "add.s32: formula sat"


def test_forms_that_were_never_compared_are_named():
    forms = ["add.rn.f32 d, a, b", "add.odd.f32 d, a, b", "brkpt d", "vadd4.s32 d, a, b"]
    found = not_compared_in(map(instruction, forms))
    assert found == ("add.f32 with odd", "brkpt", "vadd4.s32")


def test_page_can_be_read_back(monkeypatch, tmp_path):
    seen = {"host": [instruction("add.rn.f32 d, a, b")], "bound": [instruction("ex2.f32 d, a")]}
    entries = entries_of(seen)
    (tmp_path / "ptx.md").write_text(ptx_ledger_text(entries), encoding="utf-8")
    monkeypatch.setattr("refcomp.emulator.ptx.ledger.FOLDER", tmp_path)
    read_ptx_ledger.cache_clear()
    try:
        assert read_ptx_ledger() == entries
    finally:
        read_ptx_ledger.cache_clear()
    named = {entry.name: str(entry) for entry in entries}
    assert named["add.f32"] == "add.f32: host rn"
    assert named["mul.f32"] == "mul.f32: not compared"


def test_a_wrong_rule_is_noticed(monkeypatch):
    """A sum that is one too large."""

    def describe(form):
        return ValueRule(lambda a, b: a + b + 1, (form.type,) * 2, (form.type,))

    monkeypatch.setitem(RULES, ("add", "s16"), describe)
    cases = [case for case in value_cases() if case.form == "add.s16"]
    assert isinstance(cases[0], Case)
    (told,) = check_cases(cases).wrong
    assert told.startswith("add.s16: of [")
