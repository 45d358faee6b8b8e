"""The ledger names what agreed with a reference: each of its instructions runs here again."""

import pytest

from refcomp.emulator.ledger import PATH, ledger_text, read_ledger
from tests.emulator.agreement import all_accesses, intrinsics, operations, whole_kernels
from tests.emulator.test_run import GENERATORS


@pytest.mark.rocm
def test_the_ledger_is_what_ran(request, record_property):
    step = 1 if request.config.getoption("--nightly") else 2
    outcomes = [whole_kernels(), intrinsics(step), all_accesses(step)]
    outcomes += [operations(cases, step) for cases in GENERATORS]
    assert not any(outcome.wrong for outcome in outcomes)
    executed = frozenset().union(*(outcome.executed for outcome in outcomes))
    if request.config.getoption("--update-golden"):
        PATH.write_text(ledger_text(executed), encoding="utf-8")
    compared = {entry.mnemonic for entry in read_ledger() if entry.is_compared}
    missing = sorted(compared - executed)
    assert not missing, f"these did not run: {missing}; if that is right: --update-golden"
    record_property("summary", f"{len(compared)} instructions of gfx942 agree with a reference")


def test_entries_say_how_far_they_go():
    entries = {entry.mnemonic: entry for entry in read_ledger()}
    assert str(entries["v_add_f32"]) == "v_add_f32: exact"
    assert str(entries["v_rcp_f32"]) == "v_rcp_f32: approximate"
    assert str(entries["s_nand_b64"]) == "s_nand_b64: exact, not compared"
    assert list(entries) == sorted(entries) and len(entries) > 400
    assert sum(entry.is_compared for entry in entries.values()) >= 250


def test_the_text_can_be_read_back():
    text = ledger_text({"v_exp_f32", "s_mov_b32"})
    assert text.endswith("- s_mov_b32: exact\n- v_exp_f32: approximate\n")
