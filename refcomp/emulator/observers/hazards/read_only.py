"""Writes to arguments that the kernel declares, or the launch requests, as read-only."""

from __future__ import annotations

from refcomp.emulator.code.findings import READ_ONLY
from refcomp.emulator.execution.launch import LaunchRequest, LoadedCode
from refcomp.emulator.machine.memory import BASE, Allocation
from refcomp.emulator.machine.observation import Access, Observer
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.observers.hazards.access_description import wrong_lanes


class ReadOnly(Observer):
    """Reports stores and updates in the memory of read-only arguments.

    Memory that a read-only argument shares with another argument may be written.
    """

    _protected: list[Allocation]

    def launched(self, loaded: LoadedCode, request: LaunchRequest) -> None:
        protected: dict[int, Allocation] = {}  # by address
        written: set[int] = set()  # addresses
        for argument in loaded.kernel(request.kernel).arguments:
            if argument.kind != "global_buffer":
                continue
            pointer = request.arguments[
                argument.offset : argument.offset + argument.size
            ]
            allocation = loaded.arena.allocation_at(int.from_bytes(pointer, "little"))
            if allocation is None:
                continue
            if argument.is_read_only:
                protected[allocation.address] = allocation
            else:
                written.add(allocation.address)
        for address in written:
            protected.pop(address, None)
        # The launch protects this memory even from arguments that the kernel may write.
        for address in request.read_only:
            allocation = loaded.arena.allocation_at(address)
            if allocation is not None:
                protected[allocation.address] = allocation
        self._protected = list(protected.values())

    def access(self, waves: Waves, access: Access) -> None:
        if access.space != "global" or not (access.is_store or access.is_atomic):
            return
        for allocation in self._protected:
            start = allocation.address - BASE
            wrong = (access.index >= start) & (access.index < start + allocation.size)
            if wrong.any():
                what = f"writes {allocation.label}, which is read-only"
                lanes = wrong_lanes(waves, access, wrong)
                waves.report(READ_ONLY, access.instruction, what, lanes)
