"""What refcomp prints agrees with a reference on each emulated GPU, and so say the ledgers.

Each part of the kernels runs by itself; the last one that comes holds what all of them have shown
of each instruction against the ledger.
"""

import json
from functools import partial

import pytest

from refcomp.emulator.generations.generation import GENERATIONS, GFX942
from refcomp.emulator.ledger import (
    FOLDER,
    Entry,
    entry_of,
    ledger_text,
    not_compared,
    read_ledger,
)
from refcomp.emulator.observers.coverage import Coverage, Seen
from tests.codegen.amdgpu.kernels import use_llvm
from tests.emulator.agreement import GENERATORS, all_accesses, intrinsics, operations, whole_kernels
from tests.emulator.instructions.matrix.matrix_kernels import matrix_products
from tests.emulator.instructions.matrix.wave_matrix_kernels import wave_products
from tests.emulator.instructions.twice_compiled import ir_operations

# How many instructions count as compared, at least.
_LEAST = {"gfx942": 405, "gfx90a": 398, "gfx1100": 391}
# Each takes a step and the name of a GPU; all operations and kernels run at night.
PARTS = {
    "whole kernels": lambda step, gpu: whole_kernels(gpu),
    "intrinsics": intrinsics,
    "accesses": all_accesses,
    **{cases.__name__: partial(operations, cases) for cases in GENERATORS},
    "operations of LLVM IR": lambda step, gpu: ir_operations(1, gpu),
    "matrix products": lambda step, gpu: _PRODUCTS.get(gpu, matrix_products)(gpu),
}
_PRODUCTS = {"gfx1100": wave_products}


@pytest.fixture
def _llvm_of_the_ledgers(monkeypatch):
    """Another LLVM makes other instructions of the same kernels."""
    use_llvm("19", monkeypatch)


@pytest.mark.rocm
@pytest.mark.usefixtures("_llvm_of_the_ledgers")
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("gpu", GENERATIONS)
def test_kernels_agree_and_the_ledger_says_so(gpu, part, request, record_property, run_folder):
    step = 1 if request.config.getoption("--nightly") else 2
    outcome = PARTS[part](step, gpu)
    assert not outcome.wrong, "\n".join(outcome.wrong[:20])
    assert outcome.count > 0
    record_property("summary", f"{outcome.count} {part} agree on {gpu}")
    coverage = _seen_by_all(outcome.seen, part, run_folder / f"ledger {gpu}")
    if coverage is not None:  # the last one that comes
        _hold(coverage, gpu, request.config.getoption("--update-golden"), record_property)


def _seen_by_all(seen, part, folder):
    """What all parts have shown; None while some are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{part}.draft"
    told = {n: [one.is_partial, [*one.edges], [*one.modifiers]] for n, one in seen.items()}
    draft.write_text(json.dumps(told), encoding="utf-8")
    draft.rename(folder / f"{part}.json")
    parts, coverage = sorted(folder.glob("*.json")), Coverage()
    for path in parts:
        told = json.loads(path.read_text(encoding="utf-8"))
        coverage.add({n: Seen(p, {*edges}, {*names}) for n, (p, edges, names) in told.items()})
    return coverage if len(parts) == len(PARTS) else None


def _hold(coverage, gpu, writes, record_property):
    generation = GENERATIONS[gpu]
    if writes:
        text = ledger_text(coverage.seen, generation)
        (FOLDER / f"{gpu}.md").write_text(text, encoding="utf-8")
        read_ledger.cache_clear()
    entries = [entry for entry in read_ledger(generation) if entry.seen]
    missing = [one.mnemonic for one in entries if not _was_seen(one, coverage.seen)]
    assert not missing, f"these ran with less: {missing}; if that is right: --update-golden"
    compared = [entry for entry in entries if entry.is_compared]
    told = f"{len(compared)} instructions of {gpu} are compared, of {len(entries)} that ran"
    record_property("summary", told)
    assert len(compared) >= _LEAST.get(gpu, 0)


def _was_seen(entry, seen):
    """Whether a run has shown all that the ledger says of an instruction."""
    one = seen.get(entry.mnemonic, Seen())
    return (
        one.is_partial >= entry.seen.is_partial
        and one.edges >= entry.seen.edges
        and one.modifiers >= entry.seen.modifiers
    )


def test_entries_say_how_far_they_go():
    entries = {entry.mnemonic: entry for entry in read_ledger()}
    assert str(entries["v_add_f32"]).startswith("v_add_f32: exact; ")
    assert entries["v_add_f32"].is_compared and entries["v_add_f32"].seen.is_partial
    assert str(entries["s_sethalt"]) == "s_sethalt: exact, not compared"
    assert list(entries) == sorted(entries) and len(entries) > 400


ALL = {"inf", "nan", "denormal", "-0"}


@pytest.mark.parametrize(
    ("mnemonic", "seen", "told"),
    [
        ("v_add_f32", Seen(True, ALL, {"neg"}), "exact; neg"),
        ("v_add_f32", Seen(False, ALL), "exact, not compared with some lanes off"),
        ("v_rcp_f32", Seen(True, ALL - {"nan"}), "approximate, not compared with nan"),
        ("global_load_dword", Seen(False), "exact, not compared with some lanes off"),
        ("s_add_u32", Seen(False, {"least"}), "exact, not compared with greatest"),
        ("s_add_u32", Seen(False, {"least", "greatest"}), "exact"),
        ("v_add_f32", None, "exact, not compared"),
    ],
)
def test_what_counts_as_compared(mnemonic, seen, told):
    """An instruction that never ran with lanes off does not count."""
    entry = entry_of(mnemonic, seen)
    assert str(entry) == f"{mnemonic}: {told}" and entry.is_compared == ("not " not in told)


def test_the_text_can_be_read_back(monkeypatch, tmp_path):
    seen = {"v_exp_f32": Seen(True, {"inf", "-0"}, {"neg", "abs"}), "s_mov_b32": Seen()}
    text = ledger_text(seen, GFX942)
    assert "\n- s_mov_b32: exact\n" in text
    line = "- v_exp_f32: approximate; some lanes off; operands inf -0; modifiers abs neg\n"
    assert text.endswith(line)
    (tmp_path / "gfx942.md").write_text(text)
    monkeypatch.setattr("refcomp.emulator.ledger.FOLDER", tmp_path)
    read_ledger.cache_clear()
    try:
        found = {entry.mnemonic: entry.seen for entry in read_ledger() if entry.seen}
    finally:
        read_ledger.cache_clear()
    assert found == seen


def test_what_ran_with_other_modifiers_is_told(monkeypatch):
    entry = Entry("v_add_f32", False, Seen(True, ALL, {"neg"}))
    monkeypatch.setattr("refcomp.emulator.ledger.read_ledger", lambda of: (entry,))
    ran = [("v_add_f32", frozenset({"neg"})), ("v_add_f32", frozenset({"clamp", "neg"}))]
    assert not_compared(ran[:1]) == ()
    assert not_compared([*ran, ("v_odd", frozenset())]) == ("v_add_f32 with clamp", "v_odd")
