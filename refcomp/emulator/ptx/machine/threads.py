"""The threads of some blocks that run together: their registers and their memory.

A register is an array with an element for each thread. While all threads hold the same value, it is
an array without axes. So most arithmetic on sizes and loop counters is done once for all threads.

Threads are numbered block by block. A block is padded to whole warps with threads that do not
exist. Registers belong to a frame, which is a function at one depth of calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.findings import (
    MISALIGNED,
    OUT_OF_BOUNDS,
    READ_ONLY,
    UNDEFINED,
    WAIT,
)
from refcomp.emulator.machine.arrays import Array, Mask, Offsets
from refcomp.emulator.machine.memory import BASE, Arena, Bytes
from refcomp.emulator.ptx.machine.findings import Extents, PtxFinding, PtxFindings
from refcomp.emulator.ptx.machine.observation import PtxObserver, SpaceAccess
from refcomp.emulator.ptx.machine.pending_copies import PendingCopies
from refcomp.emulator.ptx.machine.phases import PhaseBarrier
from refcomp.emulator.ptx.machine.spaces import (
    LOCAL_WINDOW,
    SHARED_WINDOW,
    space_of_generic,
)
from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

WARP = 32


@dataclass(frozen=True, slots=True)
class LaunchSurroundings:
    """The environment that all blocks of a launch share."""

    arena: Arena
    kernel: str
    grid: Extents  # numbers of blocks
    block: Extents  # threads of a block
    shared_bytes: int  # of a block, dynamic shared memory included
    dynamic_bytes: int  # dynamic shared memory of a block
    local_bytes: int  # of a thread
    symbols: Mapping[str, int]  # variables and parameters of the kernel -> address
    is_watched: bool  # whether undefined bits are tracked
    findings: PtxFindings = field(default_factory=PtxFindings)
    observers: tuple[PtxObserver, ...] = ()
    # The first and the end address of each allocation that must not be written.
    read_only: tuple[tuple[int, int], ...] = ()
    reserved_bytes: int = 0  # the last bytes of `shared_bytes`, which CUDA reserves
    printed: list[str] = field(default_factory=list)  # texts that the kernel printed


class CallFrame:
    """The registers of a function at one depth of calls, and its parameters.

    Attributes:
        function: the name of the function.
        values: the value of each register, by its number.
        undefined: the undefined bits of each register, by its number; None: there are none.
        parameters: the parameters and results of the function, and those of its calls, for each
            thread.
        stride: the bytes of `parameters` for each thread.
    """

    def __init__(
        self,
        function: str,
        initial: list[Array],
        stride: int,
        threads: int,
        *,
        is_watched: bool,
    ) -> None:
        self.function = function
        self.values = list(initial)
        self.undefined: list[Array | None] = [None] * len(initial)
        if is_watched:
            self.undefined = [~value for value in initial]
        self.stride = stride
        self.parameters = Bytes(stride * threads, is_watched=is_watched)


class CheckedPlace(NamedTuple):
    """The target of an access of some threads, in one memory."""

    memory: Bytes
    offsets: Offsets  # in bytes; 0 for an access that is out of bounds
    taken: (
        Array | None
    )  # indices of the threads among those that access; None: all of them


class BlockThreads:
    """The threads of some blocks.

    Attributes:
        count: the number of threads, including those that do not exist.
        exists: bool [thread].
        lanes: numbers of the threads that run; None if all run.
        at: numbers of the threads whose registers are read and written; None for all. If only some
            threads run, `at` may still be None: then the others do not need their values.
        frame: the registers and parameters of the threads that run.
    """

    def __init__(self, around: LaunchSurroundings, blocks: Array) -> None:
        self.around = around
        self.blocks = blocks
        x, y, z = around.block
        self.per_block = -(-x * y * z // WARP) * WARP
        self.count = self.per_block * len(blocks)
        number = np.arange(self.count)
        self.in_block = number % self.per_block
        self.block_of = number // self.per_block
        self.exists: Mask = self.in_block < x * y * z
        self.at: Array | None = None
        self.lanes: Array | None = None
        self.stride = -(-max(around.shared_bytes, 1) // 16) * 16
        self.shared = Bytes(self.stride * len(blocks), is_watched=around.is_watched)
        self._local_stride = -(-around.local_bytes // 16) * 16
        self.local = Bytes(
            self._local_stride * self.count, is_watched=around.is_watched
        )
        self.stack = np.zeros(
            self.count, np.int64
        )  # begin of the frame in local memory
        self.frame: CallFrame
        self.steps = 0  # instructions that ran, for clocks
        self._pending_copies: PendingCopies | None = None
        # Barriers in shared memory (mbarrier), by their offset in `shared`.
        self.phase_barriers: dict[int, PhaseBarrier] = {}
        self._specials: dict[str, Array] = {}

    # Which threads run.

    def size(self) -> int:
        """Return the number of threads that run."""
        return self.count if self.lanes is None else len(self.lanes)

    def numbers(self) -> Array:
        """Return the numbers of the threads that run."""
        return np.arange(self.count) if self.lanes is None else self.lanes

    def pick(self, value: Array) -> Array:
        """Return the elements of a register's value for the threads that run.

        A value without axes, the same for all threads, stays so.
        """
        if self.at is not None or self.lanes is None or value.ndim == 0:
            return value
        return value[self.lanes]

    # NumberedRegisters.

    def read(self, number: int) -> Array:
        """Return the value of a register for the threads `at`."""
        value = self.frame.values[number]
        return value if self.at is None or value.ndim == 0 else value[self.at]

    def read_undefined(self, number: int) -> Array | None:
        """Return the undefined bits of a register; None if there are none."""
        bits = self.frame.undefined[number]
        if bits is None or self.at is None or bits.ndim == 0:
            return bits
        found: Array = bits[self.at]
        return found if found.any() else None

    def write(self, number: int, value: Array, undefined: Array | None = None) -> None:
        """Set a register for the threads `at`."""
        frame = self.frame
        if self.at is None:
            frame.values[number] = value
            frame.undefined[number] = undefined
            return
        frame.values[number] = self._merged(frame.values[number], value)
        old = frame.undefined[number]
        if old is None and undefined is None:
            return
        nothing = np.zeros((), value.dtype)
        merged = self._merged(
            nothing if old is None else old, nothing if undefined is None else undefined
        )
        frame.undefined[number] = merged if merged.any() else None

    def _merged(self, old: Array, value: Array) -> Array:
        # A copy: other registers may hold the same array.
        whole = np.full(self.count, old) if old.ndim == 0 else old.copy()
        whole[self.at] = value
        return whole

    def spread(self, value: Array) -> Array:
        """Return values of the threads that run as a register's value."""
        if value.ndim == 0:
            return value
        whole = np.zeros(self.count, value.dtype)
        whole[self.lanes] = value
        return whole

    def special(self, instruction: PtxInstruction, name: str) -> Array:
        """Return the value of a special register for the threads `at`.

        Raise Unsupported, which names the instruction, for a register that is not emulated.
        """
        value = self._specials.get(name)
        if value is None:
            value = _special(self, instruction, name)
            if not name.startswith(("%clock", "%globaltimer")):
                self._specials[name] = value
        return value if self.at is None or value.ndim == 0 else value[self.at]

    # Memory.

    def pending_copies(self) -> PendingCopies:
        """Return the asynchronous copies in flight."""
        if self._pending_copies is None:
            shared_bytes = self.stride * len(self.blocks)
            self._pending_copies = PendingCopies(shared_bytes, threads=self.count)
        return self._pending_copies

    def places(
        self,
        instruction: PtxInstruction,
        addresses: Array,
        space: str,
        size: int,
        *,
        is_load: bool,
    ) -> list[CheckedPlace]:
        """Check an access, and return its target: a place for each space.

        Args:
            instruction: the instruction.
            addresses: uint64, for each thread that runs, or without axes.
            space: "global", "shared" or "local"; "" for generic addresses.
            size: bytes that each thread accesses, and the alignment.
            is_load: True for a load.
        """
        if space == "global":
            return [self._in_arena(instruction, addresses, size, None, is_load)]
        if addresses.ndim == 0:
            addresses = np.broadcast_to(addresses, self.size())
        if space:
            return [self._in_window(instruction, addresses, space, size, None)]
        found: list[CheckedPlace] = []
        spaces = space_of_generic(addresses)
        for here, mask in spaces.items():
            taken = None if len(spaces) == 1 else np.flatnonzero(mask)
            some = addresses if taken is None else addresses[taken]
            if here == "global":
                found.append(self._in_arena(instruction, some, size, taken, is_load))
            else:
                window = SHARED_WINDOW if here == "shared" else LOCAL_WINDOW
                some = some - np.uint64(window)
                found.append(self._in_window(instruction, some, here, size, taken))
        return found

    def _in_arena(
        self,
        instruction: PtxInstruction,
        addresses: Array,
        size: int,
        taken: Array | None,
        is_load: bool,
    ) -> CheckedPlace:
        arena = self.around.arena
        listed = np.atleast_1d(addresses)
        wrong = arena.outside(listed, size)
        index = (addresses - np.uint64(BASE)).view(np.int64)
        if wrong is not None:
            first = int(listed[np.flatnonzero(wrong)[0]])
            text = f"{'reads' if is_load else 'writes'} {arena.describe(first, size)}"
            self.report(OUT_OF_BOUNDS, instruction, text, wrong, taken)
            index = np.where(wrong, 0, index)
        for first_byte, end in () if is_load else self.around.read_only:
            inside = (listed >= np.uint64(first_byte)) & (listed < np.uint64(end))
            if inside.any():
                owner = arena.allocation_at(first_byte)
                label = "memory" if owner is None else owner.label
                what = f"writes to {label}, which is read-only"
                self.report(READ_ONLY, instruction, what, inside, taken)
        return CheckedPlace(
            arena.bytes, self._aligned(instruction, index, size, taken), taken
        )

    def _in_window(
        self,
        instruction: PtxInstruction,
        offsets: Array,
        space: str,
        size: int,
        taken: Array | None,
    ) -> CheckedPlace:
        """Check offsets in shared or local memory."""
        is_shared = space == "shared"
        limit = self.around.shared_bytes if is_shared else self.around.local_bytes
        index = offsets.view(np.int64)
        if int(offsets.max()) > limit - size:
            wrong = (offsets > np.uint64(limit)) | (
                np.uint64(limit) - offsets < np.uint64(size)
            )
            first = int(index[np.flatnonzero(wrong)[0]])
            owner = "block" if is_shared else "thread"
            accessed = counted(size, "byte")
            what = f"accesses {accessed} at {first} of {space} memory; a {owner} has {limit}"
            self.report(OUT_OF_BOUNDS, instruction, what, wrong, taken)
            index = np.where(wrong, 0, index)
        index = self._aligned(instruction, index, size, taken)
        numbers = self.numbers()
        if taken is not None:
            numbers = numbers[taken]
        if is_shared:
            index = index + self.block_of[numbers] * self.stride
            if self._pending_copies is not None:
                in_flight = self._pending_copies.in_flight(index, size)
                if in_flight.any():
                    what = "accesses bytes that an asynchronous copy writes, without a wait"
                    self.report(WAIT, instruction, what, in_flight, taken)
            return CheckedPlace(self.shared, index, taken)
        return CheckedPlace(self.local, index + numbers * self._local_stride, taken)

    def _aligned(
        self,
        instruction: PtxInstruction,
        index: Offsets,
        size: int,
        taken: Array | None,
    ) -> Offsets:
        if not int(np.bitwise_or.reduce(index, axis=None)) & (size - 1):
            return index
        wrong = np.atleast_1d((index & (size - 1)) != 0)
        what = f"an address is not a multiple of {size}, the bytes of the access"
        self.report(MISALIGNED, instruction, what, wrong, taken)
        return index & ~np.int64(size - 1)

    def show(
        self,
        instruction: PtxInstruction,
        places: list[CheckedPlace],
        size: int,
        *,
        is_store: bool,
        is_strong: bool,
        values: Sequence[Array] = (),
        part: int = 0,
        parts: int = 1,
    ) -> Array | None:
        """Show an access to all observers. `values` are picked for the threads that run.

        Return True for the bytes that a thread gets as undefined. The shape is (threads that run,
        size). None: there are none.
        """
        numbers = self.numbers()
        poisoned: Array | None = None
        for place in places:
            if place.memory is self.local:
                continue
            space = "shared" if place.memory is self.shared else "global"
            some = numbers if place.taken is None else numbers[place.taken]
            own = tuple(
                value if value.ndim == 0 or place.taken is None else value[place.taken]
                for value in values
            )
            access = SpaceAccess(
                instruction=instruction,
                space=space,
                is_store=is_store,
                is_strong=is_strong,
                size=size,
                offsets=np.broadcast_to(place.offsets, some.shape),
                numbers=some,
                values=own,
                part=part,
                parts=parts,
            )
            for observer in self.around.observers:
                observer.accessed(self, access)
                found = observer.poisoned(self, access)
                if found is not None:
                    if poisoned is None:
                        poisoned = np.zeros((len(numbers), size), np.bool_)
                    poisoned[slice(None) if place.taken is None else place.taken] = (
                        found
                    )
        return poisoned

    # Findings.

    def report(
        self,
        kind: str,
        instruction: PtxInstruction,
        what: str,
        wrong: Array,
        taken: Array | None = None,
    ) -> None:
        """Report a finding. Threads that do not exist have none.

        Args:
            kind: the kind of the finding.
            instruction: the instruction.
            what: a description for the first thread.
            wrong: bool, for each thread of `taken`; a single element for all of them.
            taken: indices among the threads that run; None: all of these.
        """
        numbers = self.numbers()
        if taken is not None:
            numbers = numbers[taken]
        if wrong.size == 1:
            wrong = np.broadcast_to(wrong.reshape(()), numbers.shape)
        found = numbers[wrong]
        found = found[self.exists[found]]
        if not len(found):
            return
        first = int(found[0])
        self.around.findings.add(
            PtxFinding(
                kind=kind,
                what=what,
                instruction=instruction,
                function=self.frame.function,
                kernel=self.around.kernel,
                block=self._block(first),
                thread=_position(int(self.in_block[first]), self.around.block),
                times=len(found),
            )
        )

    def report_undefined(
        self, instruction: PtxInstruction, what: str, undefined: Array
    ) -> None:
        """Report that something depends on undefined bits, given for the threads `at`."""
        wrong = self.pick(np.asarray(undefined != 0))
        if wrong.any():
            text = f"{what} depends on bits that nothing wrote"
            self.report(UNDEFINED, instruction, text, np.atleast_1d(wrong))

    def _block(self, thread: int) -> Extents:
        x, y, z = map(int, self.blocks[self.block_of[thread]])
        return x, y, z


def _position(number: int, extents: Extents) -> Extents:
    """Return the position of a number along x, y and z. x changes fastest."""
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


_AXES = {"x": 0, "y": 1, "z": 2}


def _special(threads: BlockThreads, instruction: PtxInstruction, name: str) -> Array:
    """Return the value of a special register, for all threads.

    Source: NVIDIA, "Parallel Thread Execution ISA", section "Special Registers".
    """
    base, _, axis = name[1:].partition(".")
    around = threads.around
    if axis:
        return _axis_register(threads, base, _AXES[axis])
    lane = threads.in_block % WARP
    masks = {
        "eq": np.uint64(1) << lane.astype(np.uint64),
        "lt": (np.uint64(1) << lane.astype(np.uint64)) - np.uint64(1),
    }
    masks["le"] = masks["eq"] | masks["lt"]
    masks["gt"] = np.uint64(0xFFFFFFFF) ^ masks["le"]
    masks["ge"] = np.uint64(0xFFFFFFFF) ^ masks["lt"]
    if base.startswith("lanemask_"):
        return masks[base[-2:]].astype(np.uint32)
    if base in ("clock64", "globaltimer"):
        return np.asarray(threads.steps, np.uint64)
    reserved = around.shared_bytes - around.reserved_bytes
    numbers: dict[str, Array | int] = {
        "laneid": lane,
        "warpid": threads.in_block // WARP,
        "nwarpid": threads.per_block // WARP,
        "smid": 0,
        "nsmid": 1,
        "gridid": 0,
        "clock": threads.steps & 0xFFFFFFFF,
        "clock_hi": threads.steps >> 32,
        "dynamic_smem_size": around.dynamic_bytes,
        "total_smem_size": around.shared_bytes,
        "aggr_smem_size": around.shared_bytes,
        "globaltimer_lo": threads.steps & 0xFFFFFFFF,
        "globaltimer_hi": threads.steps >> 32,
        "reserved_smem_offset_begin": reserved,
        "reserved_smem_offset_end": around.shared_bytes,
        "reserved_smem_offset_cap": around.reserved_bytes,
        "reserved_smem_offset_0": reserved,
        "reserved_smem_offset_1": reserved + around.reserved_bytes // 2,
        "cluster_ctarank": 0,
        "cluster_nctarank": 1,
        "is_explicit_cluster": 0,
    }
    if base not in numbers:
        raise Unsupported(
            f"the register {name} is not emulated",
            where=f"line {instruction.line}: {instruction.text}",
            why="only the driver of a GPU knows its value",
            remedy="pass the value as an argument of the kernel",
        )
    return np.asarray(numbers[base]).astype(np.uint32)


def _axis_register(threads: BlockThreads, base: str, axis: int) -> Array:
    """Return the value of a special register of one axis, such as `%tid.x`."""
    around = threads.around
    if base == "tid":
        x, y, _ = around.block
        below = (1, x, x * y)[axis]
        number = threads.in_block // below % around.block[axis]
        return number.astype(np.uint32)
    if base in ("ctaid", "clusterid"):
        # If all blocks have the same number along this axis, the register has no axes.
        of_blocks = threads.blocks[:, axis].astype(np.uint32)
        if (of_blocks == of_blocks[0]).all():
            return np.asarray(of_blocks[0])
        whole: Array = of_blocks[threads.block_of]
        return whole
    sizes = {
        "ntid": around.block,
        "nctaid": around.grid,
        "nclusterid": around.grid,
        "cluster_ctaid": (0, 0, 0),
        "cluster_nctaid": (1, 1, 1),
    }
    return np.asarray(sizes[base][axis], np.uint32)
