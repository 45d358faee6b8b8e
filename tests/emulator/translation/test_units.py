"""Units: where they begin and end, and the registers that they read and write."""

from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.translation.units import BoundRun, CodeUnit, scalars, units_of, vectors
from tests.emulator.translation.translated import bound, only_unit

V = FIRST_VECTOR
_ADD = "v_add_f32_e32 v0, v0, v1"
_MOVE = "v_mov_b32_e32 v2, v0"


def _shapes(*lines: str, indexed: int = -1) -> list[int]:
    """The lengths of units; 0 for an instruction that is in none."""
    given = [
        BoundRun(one.instruction, one.run, is_indexed=number == indexed)
        for number, one in enumerate(bound(*lines))
    ]
    parts = units_of(given, GFX942, 64)
    return [len(part.steps) if isinstance(part, CodeUnit) else 0 for part in parts]


def test_inputs_are_what_is_read_before_it_is_written():
    unit = only_unit(_ADD, _MOVE, "v_mov_b32_e32 v1, s4", "s_mov_b32 s4, s5")
    assert unit.inputs == {V, V + 1, 4, 5}
    assert unit.outputs == {V, V + 1, V + 2, 4}
    assert vectors(unit.outputs) == [V, V + 1, V + 2] and scalars(unit.outputs) == [4]
    assert unit.is_plain


def test_an_instruction_without_a_step_ends_a_unit():
    assert _shapes(_ADD, _MOVE, "v_exp_f32_e32 v0, v1", _ADD, _ADD, _MOVE) == [2, 0, 3]


def test_a_unit_has_two_steps_at_least_or_accesses_memory():
    assert _shapes(_ADD, "v_exp_f32_e32 v0, v1", _ADD) == [0, 0, 0]
    load = "ds_read2_b32 v[2:3], v0 offset1:1"
    assert _shapes("v_exp_f32_e32 v0, v1", load, "v_exp_f32_e32 v0, v1") == [0, 1, 0]


def test_a_load_behind_a_store_to_the_same_memory_begins_a_unit():
    store = "ds_write_b32 v0, v1"
    assert _shapes(_ADD, store, "ds_read_b32 v2, v0", _ADD) == [2, 2]
    assert _shapes(_ADD, store, "global_load_dword v2, v0, s[0:1]", _ADD) == [4]
    far = "global_store_dword v0, v1, s[0:1]"
    assert _shapes(_ADD, far, "s_load_dword s4, s[0:1], 0x0", _ADD) == [2, 2]


def test_indexed_instructions_are_interpreted():
    assert _shapes(_ADD, _ADD, _ADD, _ADD, _ADD, indexed=2) == [2, 0, 2]


def test_accesses_can_hold_up_a_wave():
    assert not only_unit(_ADD, "ds_read_b32 v2, v0").is_plain
