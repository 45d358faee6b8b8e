"""The addresses that functions of translated code are given."""

import ctypes

import numpy as np

from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.translation.host_state import define_whole, state_of
from refcomp.emulator.translation.printer import FIELDS
from tests.emulator.snippets import make_waves

_NAMES = list(FIELDS)


def _fields(waves):
    address = state_of(waves).address_for(waves)
    values = (ctypes.c_int64 * len(_NAMES)).from_address(address)
    return dict(zip(_NAMES, values, strict=True))


def _rows(fields):
    return list((ctypes.c_int64 * fields["count"]).from_address(fields["rows"]))


def test_fields_are_the_addresses_of_registers():
    waves = make_waves(3)
    fields = _fields(waves)
    assert fields["v"] == waves.values.v.ctypes.data
    assert fields["u"] == waves.shadow.v.ctypes.data
    assert fields["v.stride"] == waves.values.v.strides[0]
    assert _fields(make_waves(3, watched=False))["u"] == 0


def test_rows_follow_the_waves_that_run():
    waves = make_waves(3)
    assert _rows(_fields(waves)) == [0, 1, 2]
    for rows in ([1], [0, 2], [0, 2]):
        waves.select(np.array(rows))
        for _ in range(2):
            assert _rows(_fields(waves)) == rows
    waves.select(slice(None))
    assert _rows(_fields(waves)) == [0, 1, 2]


def test_waves_have_one_state():
    waves = make_waves(2)
    assert state_of(waves) is state_of(waves)


def test_registers_are_defined_in_the_waves_that_run():
    waves = make_waves(2)
    number = FIRST_VECTOR + 4
    waves.shadow.v[4] = 1
    waves.dirty.add(number)
    waves.select(np.array([1]))
    define_whole(waves, {number})
    assert waves.shadow.v[4, 0].all() and not waves.shadow.v[4, 1].any()
    assert number in waves.dirty
    waves.select(slice(None))
    define_whole(waves, {number})
    assert not waves.shadow.v[4].any()
    assert number not in waves.dirty
