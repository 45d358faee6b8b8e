"""Writes to arguments that a kernel says, or whoever launches it, that it only reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.emulator.code.findings import READ_ONLY
from refcomp.emulator.machine.memory import BASE, Allocation
from refcomp.emulator.machine.observation import Access, Observer


class ReadOnly(Observer):
    """Tells of stores and updates in the memory of read-only arguments, unless another argument
    points to the same memory."""

    _kept: list[Allocation]

    def launched(self, loaded: Any, request: Any) -> None:
        kept, written = {}, set()
        for argument in loaded.kernel(request.kernel).arguments:
            if argument.kind != "global_buffer":
                continue
            place = request.arguments[argument.offset : argument.offset + argument.size]
            found = loaded.arena.allocation_at(int.from_bytes(place, "little"))
            if found is not None and argument.is_read_only:
                kept[found.address] = found
            elif found is not None:
                written.add(found.address)
        given = (loaded.arena.allocation_at(address) for address in request.read_only)
        kept = {
            address: found for address, found in kept.items() if address not in written
        }
        self._kept = list(
            {**kept, **{found.address: found for found in given if found}}.values()
        )

    def access(self, waves: Any, access: Access) -> None:
        if access.space != "global" or not (access.is_store or access.is_atomic):
            return
        for place in self._kept:
            start = place.address - BASE
            wrong = (access.index >= start) & (access.index < start + place.size)
            if wrong.any():
                lanes = np.zeros((waves.count(), waves.lanes), np.bool_)
                active = np.ones_like(lanes) if access.active is None else access.active
                lanes[active] = wrong
                what = f"writes {place.label}, which is only to be read"
                waves.report(READ_ONLY, access.instruction, what, lanes)
