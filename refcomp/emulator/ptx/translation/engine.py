"""Run blocks by the translated code of hot kernels. The interpreter runs the other blocks.

A kernel is hot when the interpreter has spent as much time on it as compiling it takes. Both times
are estimates that do not depend on the load of the machine. So a later run of a program finds the
same texts in the cache.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from refcomp.emulator.limits import Limits
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import BASE
from refcomp.emulator.ptx.execution.launch import LoadedPtx, RanBlocks
from refcomp.emulator.ptx.execution.program import BoundFunction
from refcomp.emulator.ptx.machine.spaces import SpaceLayout
from refcomp.emulator.ptx.machine.threads import WARP, LaunchSurroundings
from refcomp.emulator.ptx.text.module import PtxFunction
from refcomp.emulator.ptx.translation.emitter import (
    FRAME_POSITION,
    PlacedNames,
    places_of_parameters,
)
from refcomp.emulator.ptx.translation.flow import FunctionFlow
from refcomp.emulator.ptx.translation.printer import TranslatedKernel, print_kernel
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.emulator.ptx.translation.texts import FIELDS, NUMBER_OF
from refcomp.emulator.translation.compilation import HostTools
from refcomp.foundation.errors import RefcompError, ToolchainError

_LOG = logging.getLogger("refcomp.emulator")
# Estimates, in nanoseconds.
_COMPILE_NS = 200_000_000  # starting the tools
_COMPILE_INSTRUCTION_NS = 500_000
_INTERPRET_NS = 30  # an instruction of a thread
# Instructions of threads after which a block is interpreted. The lower limit is for a kernel that
# may wait for another block, which runs only when this block has ended.
_MAX_BLOCK_STEPS = 1 << 34
_MAX_WAITING_STEPS = 1 << 31
_JOURNAL_ROOM = 1 << 22  # stores of a block to global memory
_RECORD_WORDS = 4
# Blocks that may bail out before their number is compared with that of the other blocks.
_MAX_STOPS = 4


@dataclass(slots=True)
class TranslationCounts:
    """Counts of blocks that ran translated, and reasons why kernels did not.

    Attributes:
        blocks: the number of blocks that ran to their end by translated code.
        stops: the number of blocks where translated code bailed out to the interpreter.
        refused: kernel -> the reason why it is interpreted.
    """

    blocks: int = 0
    stops: int = 0
    refused: dict[str, str] = field(default_factory=dict)


class KernelTranslation:
    """A kernel in one of its two forms, with checks of undefined bits or without.

    Attributes:
        refusal: the reason why the kernel is not translated; "" if it can be.
        kernel: the text of the compiled kernel; None before it is compiled.
        run: the function of the compiled kernel; None before it is compiled.
        cost_ns: the estimated time of compiling it, in ns.
        weight: the estimated number of instructions that a thread runs.
        spent_ns: the estimated time that the interpreter took, in ns.
        blocks: the number of blocks that ran to their end by translated code.
        stops: the number of calls of translated code that did not run all their blocks.
    """

    def __init__(self, function: PtxFunction) -> None:
        self.refusal = ""
        self.kernel: TranslatedKernel | None = None
        self.run: Callable[[int], int] | None = None
        self.cost_ns = _COMPILE_NS + _COMPILE_INSTRUCTION_NS * len(
            function.instructions
        )
        self.spent_ns = 0
        self.blocks = 0
        self.stops = 0
        self.weight = 0
        try:
            self.weight = FunctionFlow(function).weight
        except NotTranslated as error:
            self.refusal = str(error)

    @property
    def is_given_up(self) -> bool:
        """True if the code bails out so often that it saves no time."""
        return self.stops > _MAX_STOPS and 4 * self.stops > self.blocks


class PtxTranslator:
    """The translated kernels of a PTX file.

    Args:
        tools: the tools that compile them.
        shared_of: returns the layout of the shared variables of a kernel.
    """

    def __init__(
        self, tools: HostTools, shared_of: Callable[[str], SpaceLayout]
    ) -> None:
        self.counts = TranslationCounts()
        self._tools = tools
        self._shared_of = shared_of
        self._kernels: dict[tuple[str, bool], KernelTranslation] = {}
        self._journal: Array | None = None
        self._is_broken = False

    def run(
        self,
        around: LaunchSurroundings,
        kernel: BoundFunction,
        blocks: Array,
        limits: Limits,
    ) -> RanBlocks:
        """Run the first of some blocks, up to the first one that must be interpreted.

        Args:
            around: the launch.
            kernel: the kernel.
            blocks: numbers of the blocks, as [block, axis].
            limits: the limits after which the interpreter stops.
        """
        if around.observers or self._is_broken:
            return RanBlocks(0, 0)
        found = self._translation(kernel, around.is_watched)
        if found.refusal or found.is_given_up:
            return RanBlocks(0, 0)
        if found.run is None:
            expected = len(blocks) * prod(around.block) * _INTERPRET_NS * found.weight
            if found.spent_ns + expected <= self._tools.hot * found.cost_ns:
                return RanBlocks(0, 0)
            self._compile(found, kernel, is_watched=around.is_watched)
        if found.run is None or found.kernel is None:
            return RanBlocks(0, 0)
        if self._journal is None:
            self._journal = np.empty(_JOURNAL_ROOM * _RECORD_WORDS, np.int64)
        state = BlockState(around, found.kernel, blocks, limits, self._journal)
        ended = found.run(state.address)
        found.blocks += ended
        self.counts.blocks += ended
        if ended < len(blocks):
            found.stops += 1
            self.counts.stops += 1
        return RanBlocks(ended, state.steps() // WARP)

    def interpreted(self, kernel: BoundFunction, is_watched: bool, steps: int) -> None:
        """Record `steps` instructions that the interpreter ran, each counted once for a warp."""
        found = self._kernels.get((kernel.function.name, is_watched))
        if found is not None:
            found.spent_ns += steps * WARP * _INTERPRET_NS

    def _translation(
        self, kernel: BoundFunction, is_watched: bool
    ) -> KernelTranslation:
        key = kernel.function.name, is_watched
        found = self._kernels.get(key)
        if found is None:
            found = self._kernels[key] = KernelTranslation(kernel.function)
            if found.refusal:
                self.counts.refused[kernel.function.name] = found.refusal
        return found

    def _compile(
        self, found: KernelTranslation, kernel: BoundFunction, *, is_watched: bool
    ) -> None:
        """Print and compile a kernel that is hot."""
        shared = self._shared_of(kernel.function.name)
        names = PlacedNames(
            kernel.names.spaces,
            {
                name: shared.offsets[key]
                for name, key in kernel.names.shared.items()
                if key in shared.offsets
            },
            kernel.names.local,
            shared.bytes,
            places_of_parameters(kernel.function),
        )
        try:
            found.kernel = print_kernel(kernel.function, names, is_watched=is_watched)
            function = self._tools.compile(found.kernel.text)["run"]
        except ToolchainError as error:
            _LOG.warning("all PTX is interpreted, which is slow: %s", error)
            self._is_broken = True
            return
        except (NotTranslated, RefcompError) as error:
            found.refusal = self.counts.refused[kernel.function.name] = str(error)
            return
        function.restype = ctypes.c_int64  # type: ignore[attr-defined]
        function.argtypes = [ctypes.c_void_p]  # type: ignore[attr-defined]
        found.run = function


def translated(loaded: LoadedPtx, tools: HostTools | None) -> LoadedPtx:
    """Return a loaded file whose hot kernels are translated. Without tools, return it unchanged."""
    if tools is None:
        return loaded
    return replace(loaded, runner=PtxTranslator(tools, loaded.program.shared_of))


class BlockState:
    """The addresses and numbers that are arguments of a module's function, for some blocks."""

    def __init__(
        self,
        around: LaunchSurroundings,
        kernel: TranslatedKernel,
        blocks: Array,
        limits: Limits,
        journal: Array,
    ) -> None:
        arena = around.arena
        threads = prod(around.block)
        most = _MAX_WAITING_STEPS if kernel.may_wait else _MAX_BLOCK_STEPS
        self._fields = np.zeros(len(FIELDS), np.int64)
        self.address = self._fields.ctypes.data
        is_watched = around.is_watched
        shared = -(-max(around.shared_bytes, 1) // 16) * 16
        stride = -(-around.local_bytes // 16) * 16
        places = arena.live_places()
        starts, ends = places.starts + BASE, places.ends + BASE
        may_write = np.ones(len(starts), np.bool_)
        for first, _ in around.read_only:
            may_write &= starts != first
        symbols = [around.symbols.get(name, 0) for name in kernel.symbols]
        # The arrays whose addresses the fields hold. References keep them alive.
        self._kept: dict[str, Array | None] = {
            "arena": arena.bytes.data,
            "arena.known": arena.bytes.known,
            "starts": starts,
            "ends": ends,
            "writable.starts": starts[may_write],
            "writable.ends": ends[may_write],
            "shared": _aligned(shared),
            "shared.known": _aligned(shared) if is_watched else None,
            "local": _aligned(stride * threads),
            "local.known": _aligned(stride * threads) if is_watched else None,
            "frames": _frames(around.block, kernel.frame_words),
            "journal": journal,
            "blocks": np.ascontiguousarray(blocks, np.int64),
            "symbols": np.array(symbols or [0], np.uint64),
            "windows": np.zeros(2 * kernel.windows + 1, np.int64),
        }
        self._put(_extents(around))
        self._put(
            {
                "allocations": len(starts),
                "writable": int(may_write.sum()),
                "shared.bytes": shared,
                "local.stride": stride,
                "local.all": stride * threads,
                "frame.stride": 8 * kernel.frame_words,
                "step.limit": min(limits.steps * WARP, most),
                "count": len(blocks),
            }
        )
        arrays = self._kept.items()
        self._put({n: 0 if one is None else one.ctypes.data for n, one in arrays})

    def _put(self, numbers: Mapping[str, int]) -> None:
        for name, value in numbers.items():
            self._fields[NUMBER_OF[name]] = value

    def steps(self) -> int:
        """Return the instructions that ran, each counted once for each thread."""
        return int(self._fields[NUMBER_OF["steps"]])


def _aligned(size: int) -> Array:
    """Return zeros at an address that is a multiple of 64."""
    whole = np.zeros(size + 64, np.uint8)
    begin = -whole.ctypes.data % 64
    return whole[begin : begin + size]


def _frames(block: tuple[int, int, int], words: int) -> Array:
    """Return the initial frames of a block's threads. They hold the threads' positions."""
    x, y, _ = block
    number = np.arange(prod(block))
    frames = np.zeros((len(number), words), np.int64)
    position = (number % x, number // x % y, number // (x * y))
    for axis, values in enumerate(position):
        frames[:, FRAME_POSITION + axis] = values
    return frames


def _extents(around: LaunchSurroundings) -> dict[str, int]:
    """Return the fields that are sizes and numbers of the launch."""
    threads = prod(around.block)
    found = {
        "base": BASE,
        "shared.limit": around.shared_bytes,
        "local.limit": around.local_bytes,
        "journal.room": _JOURNAL_ROOM,
        "threads": threads,
        "warps": -(-threads // WARP),
        "dynamic": around.dynamic_bytes,
    }
    for axis, size, count in zip("xyz", around.block, around.grid, strict=True):
        found[f"ntid.{axis}"] = size
        found[f"nctaid.{axis}"] = count
    return found
