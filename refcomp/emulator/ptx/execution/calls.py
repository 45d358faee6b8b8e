"""Calls of functions: the frames of threads, and their return addresses.

Source: NVIDIA, "Parallel Thread Execution ISA", section "Control Flow Instructions: call".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.execution.operands import source, value_for
from refcomp.emulator.ptx.execution.program import BoundFunction, BoundProgram
from refcomp.emulator.ptx.execution.progress import ThreadProgress
from refcomp.emulator.ptx.execution.runtime_functions import (
    RUNTIME_FUNCTIONS,
    RuntimeCall,
    RuntimeFunction,
)
from refcomp.emulator.ptx.machine.threads import BlockThreads, CallFrame
from refcomp.emulator.ptx.text.module import (
    Operand,
    PtxFunction,
    PtxInstruction,
    SymbolAddress,
    Variable,
    Vector,
)
from refcomp.foundation.errors import Unsupported, UserError

_MAX_DEPTH = 200  # of calls


class ThreadCalls:
    """The calls of the threads of some blocks.

    Attributes:
        max_depth: the depth of the deepest call so far.
    """

    def __init__(
        self, threads: BlockThreads, program: BoundProgram, progress: ThreadProgress
    ) -> None:
        self.max_depth = 0
        self._threads = threads
        self._program = program
        self._progress = progress
        self._returns: list[Array] = []  # by depth: the return address of each thread
        self._frames: dict[tuple[int, str], CallFrame] = {}

    def frame(self, depth: int, owner: BoundFunction) -> CallFrame:
        """Return the frame of a function at a depth."""
        key = depth, owner.function.name
        found = self._frames.get(key)
        if found is None:
            threads = self._threads
            found = owner.unwritten_frame(
                threads.count, is_watched=threads.around.is_watched
            )
            self._frames[key] = found
        return found

    def call(self, end: PtxInstruction, following: int, numbers: Array) -> None:
        """Let threads call a function, which returns to the instruction `following`."""
        caller = self._program.functions[self._threads.frame.function]
        for called, some in self._callees(end, caller, numbers):
            function = RUNTIME_FUNCTIONS.get(called.function.name)
            if called.function.is_declaration and function is not None:
                self._run(end, caller, called.function, function, some)
                self._progress.pc[some] = following
            else:
                self._enter(end, caller, called, following, some)

    def _run(
        self,
        end: PtxInstruction,
        caller: BoundFunction,
        declared: PtxFunction,
        function: RuntimeFunction,
        numbers: Array,
    ) -> None:
        """Run a function of CUDA's runtime."""
        results = tuple(one.bytes for one in declared.results)
        parameters = tuple(one.bytes for one in declared.parameters)
        if (results, parameters) != (function.results, function.parameters):
            raise Unsupported(
                f"the file declares {declared.name} otherwise than CUDA does",
                where=f"line {end.line}: {end.text}",
                why=f"its results have {list(function.results)} bytes, its parameters "
                f"{list(function.parameters)}",
                remedy="give the function another name, and a body",
            )
        threads = self._threads
        frame = threads.frame
        begins = numbers * frame.stride
        values = []
        before = threads.at, threads.lanes
        threads.at = threads.lanes = numbers
        for given, wanted in _arguments(end, caller, declared):
            index = begins + caller.frame.offsets[given]
            values.append(frame.parameters.load(index, wanted.bytes))
            undefined = frame.parameters.load_undefined(index, wanted.bytes)
            if undefined is not None:
                what = f"an argument of {declared.name}"
                threads.report_undefined(end, what, undefined)
        found = function.run(RuntimeCall(threads, end, values))
        threads.at, threads.lanes = before
        for name, result in _results(end, caller, declared):
            index = begins + caller.frame.offsets[name]
            assert found is not None
            frame.parameters.store(index, result.bytes, found, None)

    def _enter(
        self,
        end: PtxInstruction,
        caller: BoundFunction,
        called: BoundFunction,
        following: int,
        numbers: Array,
    ) -> None:
        """Let threads enter a function of the file, which returns to `following`."""
        threads = self._threads
        depth = self._progress.depth_of(numbers)
        if depth + 1 >= _MAX_DEPTH:
            raise UserError(
                f"the kernel {threads.around.kernel} calls functions {_MAX_DEPTH} deep",
                where=f"line {end.line}: {end.text}",
                why="each call takes local memory, of which a thread has little",
                remedy="check where the recursion ends",
            )
        frame = self.frame(depth + 1, called)
        _results(end, caller, called.function)
        for given, wanted in _arguments(end, caller, called.function):
            source_at = numbers * threads.frame.stride + caller.frame.offsets[given]
            target_at = numbers * frame.stride + called.frame.offsets[wanted.name]
            _copy(threads.frame, source_at, frame, target_at, wanted.bytes)
        while len(self._returns) <= depth:
            self._returns.append(np.zeros(threads.count, np.int64))
        self._returns[depth][numbers] = following
        threads.stack[numbers] += -(-caller.local.bytes // 16) * 16
        self._progress.depth[numbers] = depth + 1
        self.max_depth = max(self.max_depth, depth + 1)
        self._progress.pc[numbers] = called.begin

    def _callees(
        self, end: PtxInstruction, caller: BoundFunction, numbers: Array
    ) -> Iterator[tuple[BoundFunction, Array]]:
        """Yield each function that is called, and the threads that call it."""
        callee = end.operands[1]
        if isinstance(callee, SymbolAddress):
            yield self._called(end, callee.symbol), numbers
            return
        one = source(end, callee, "u64", caller.registers)
        value = value_for(self._threads, end, one, numbers, "the address of a function")
        names = {
            self._threads.around.symbols[each]: each for each in self._program.functions
        }
        for address in np.unique(value):
            some = numbers[value == address]
            if int(address) not in names:
                raise UserError(
                    f"the kernel {self._threads.around.kernel} calls no function, but the address "
                    f"{int(address):#x}",
                    where=f"line {end.line}: {end.text}",
                    why="no function of the file lies there",
                    remedy="check where the pointer to a function is set",
                )
            yield self._called(end, names[int(address)]), some

    def _called(self, end: PtxInstruction, name: str) -> BoundFunction:
        called = self._program.functions.get(name)
        is_missing = called is None or (
            called.function.is_declaration and name not in RUNTIME_FUNCTIONS
        )
        if called is None or is_missing:
            raise Unsupported(
                f"the function {name} has no body in the file",
                where=f"line {end.line}: {end.text}",
                why=f"of the functions of CUDA's runtime only {', '.join(RUNTIME_FUNCTIONS)} are "
                "emulated; kernels cannot launch others",
                remedy="leave the call out, or link the function into the file",
            )
        return called

    def leave(self, numbers: Array) -> None:
        """Let threads return from a function to their callers."""
        threads = self._threads
        depth = self._progress.depth_of(numbers)
        called = self._program.functions[threads.frame.function]
        back = self._returns[depth - 1][numbers]
        for place in np.unique(back):
            some = numbers[back == place]
            call = self._program.instruction(int(place) - 1)
            caller = self._program.owner(int(place) - 1)
            frame = self.frame(depth - 1, caller)
            for wanted, given in _results(call, caller, called.function):
                source_at = (
                    some * threads.frame.stride + called.frame.offsets[given.name]
                )
                target_at = some * frame.stride + caller.frame.offsets[wanted]
                _copy(threads.frame, source_at, frame, target_at, given.bytes)
            threads.stack[some] -= -(-caller.local.bytes // 16) * 16
        self._progress.pc[numbers] = back
        self._progress.depth[numbers] = depth - 1


def _arguments(
    end: PtxInstruction, caller: BoundFunction, called: PtxFunction
) -> list[tuple[str, Variable]]:
    """Return the variable that holds each argument of a call, with the callee's parameter."""
    return _pairs(end, caller, called, 2, called.parameters)


def _results(
    end: PtxInstruction, caller: BoundFunction, called: PtxFunction
) -> list[tuple[str, Variable]]:
    """Return the variable that receives each result of a call, with the callee's result."""
    return _pairs(end, caller, called, 0, called.results)


def _pairs(
    end: PtxInstruction,
    caller: BoundFunction,
    called: PtxFunction,
    place: int,
    variables: Sequence[Variable],
) -> list[tuple[str, Variable]]:
    names = _names(end, end.operands[place])
    where = f"line {end.line}: {end.text}"
    if len(names) != len(variables):
        raise UserError(
            f"a call uses {called.name} with other {'arguments' if place else 'results'} than "
            "it declares",
            where=where,
            why=f"the call has {len(names)} of them, the function {len(variables)}",
            remedy="call it as it is declared",
        )
    for name in names:
        if name not in caller.frame.offsets:
            raise UserError(
                f"a call passes {name}, which is not a parameter of the caller",
                where=where,
                remedy="declare it as .param in the function that calls",
            )
    return list(zip(names, variables, strict=True))


def _names(end: PtxInstruction, operand: Operand | None) -> list[str]:
    """Return the parameters that a call names."""
    if operand is None:
        return []
    parts = operand.parts if isinstance(operand, Vector) else (operand,)
    found = []
    for part in parts:
        if not isinstance(part, SymbolAddress):
            raise Unsupported(
                f"calls that pass {part} are not emulated",
                where=f"line {end.line}: {end.text}",
                why="values are passed in .param variables",
                remedy="compile for sm_20 or later",
            )
        found.append(part.symbol)
    return found


def _copy(
    source: CallFrame, source_at: Array, target: CallFrame, target_at: Array, size: int
) -> None:
    """Copy `size` bytes of parameters between frames, for some threads."""
    steps = np.arange(size)
    data = source.parameters.data[source_at[:, None] + steps]
    target.parameters.data[target_at[:, None] + steps] = data
    if source.parameters.known is not None and target.parameters.known is not None:
        known = source.parameters.known[source_at[:, None] + steps]
        target.parameters.known[target_at[:, None] + steps] = known
