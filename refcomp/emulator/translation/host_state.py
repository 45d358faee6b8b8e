"""The state of waves as translated code takes it: addresses of registers and memory."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.translation.printer import FIELDS

_FIELD = {name: number for number, name in enumerate(FIELDS)}


class HostState:
    """The addresses of the state of waves, as functions of units take them."""

    def __init__(self, waves: Waves) -> None:
        arena = waves.around.arena
        places = arena.live_places()
        values, shadow = waves.values, waves.shadow
        self._all = np.arange(waves.waves, dtype=np.int64)
        self._all_address = self._all.ctypes.data
        self._base = waves.shared_base.reshape(-1).astype(np.int64)
        self._kept = (places, self._base)  # alive while their addresses are used
        self._fields = np.zeros(len(FIELDS), np.int64)
        self._address = self._fields.ctypes.data
        # The numbers of the waves that ran last, as they were given and as functions take them.
        self._given: Array | slice | None = None
        self._rows: Array = self._all
        self._rows_address = 0
        given = {
            "v": _address_of(values.v),
            "u": 0 if shadow is None else _address_of(shadow.v),
            "s": _address_of(values.s),
            "scc": _address_of(values.scc),
            "v.stride": values.v.strides[0],
            "s.stride": values.s.strides[0],
            "arena": _address_of(arena.bytes.data),
            "arena.known": _address_of(arena.bytes.known),
            "shared.data": _address_of(waves.shared.data),
            "shared.shadow": _address_of(waves.shared.known),
            "shared.bases": _address_of(self._base),
            "shared.limit": waves.around.shared_bytes,
            "starts": _address_of(places.starts),
            "ends": _address_of(places.ends),
            "allocations": len(places.starts),
        }
        for name, value in given.items():
            self._fields[_FIELD[name]] = value

    def address_for(self, waves: Waves) -> int:
        """Return the address of the fields, for the waves that run."""
        rows = waves.rows
        if isinstance(rows, slice):
            address = self._all_address
        elif rows is self._given:
            address = self._rows_address
        else:
            self._given = rows
            self._rows = np.ascontiguousarray(rows, np.int64)
            address = self._rows_address = self._rows.ctypes.data
        self._fields[_FIELD["rows"]] = address
        self._fields[_FIELD["count"]] = waves.count()
        return self._address


def state_of(waves: Waves) -> HostState:
    """Return the state of some waves, which is made once."""
    state = waves.host_state
    if not isinstance(state, HostState):
        state = waves.host_state = HostState(waves)
    return state


def define_whole(waves: Waves, numbers: Collection[int]) -> None:
    """Mark vector registers as written in all lanes, also in those without a work item."""
    assert waves.shadow is not None
    for number in waves.dirty.intersection(numbers):
        waves.shadow.v[number - FIRST_VECTOR, waves.rows] = 0
    if isinstance(waves.rows, slice):
        waves.dirty.difference_update(numbers)


def _address_of(array: Array | None) -> int:
    return 0 if array is None else array.ctypes.data
