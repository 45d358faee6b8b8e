"""The instructions of a module, bound to functions, in blocks that run without interruption.

All instructions of a module are numbered, function by function. A block ends before a label, before
an instruction that threads of a warp execute together, and after a control flow instruction. It is
bound when it first runs. So an instruction that is not emulated is refused only if it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from refcomp.emulator.ptx.execution.accesses import (
    Names,
    bind_address_move,
    bind_conversion_of_address,
    bind_load,
    bind_space_test,
    bind_store,
    show_order,
)
from refcomp.emulator.ptx.execution.async_copies import bind_async_copy
from refcomp.emulator.ptx.execution.atomics import bind_atomic
from refcomp.emulator.ptx.execution.clusters import CLUSTERS
from refcomp.emulator.ptx.execution.matrices import MATRICES
from refcomp.emulator.ptx.execution.mbarriers import bind_phase_barrier
from refcomp.emulator.ptx.execution.operands import NumberedRegisters, Run, bind_rule
from refcomp.emulator.ptx.execution.refusals import refuse
from refcomp.emulator.ptx.execution.together import bind_together
from refcomp.emulator.ptx.instructions.rules import OPCODES, rule_of
from refcomp.emulator.ptx.machine.spaces import SpaceLayout, lay_out
from refcomp.emulator.ptx.machine.threads import BlockThreads, CallFrame
from refcomp.emulator.ptx.text.module import (
    PtxFunction,
    PtxInstruction,
    PtxModule,
    Variable,
    registers_in,
)
from refcomp.emulator.ptx.text.reach import reached_functions, symbols_in
from refcomp.foundation.errors import Unsupported

# Opcodes of control flow, and of barriers.
CONTROL = frozenset(
    {"bra", "brx", "call", "ret", "exit", "trap", "bar", "barrier", "brkpt"}
)
# Opcodes that threads of a warp execute together.
TOGETHER = frozenset(
    {"shfl", "vote", "match", "redux", "activemask", "elect", *MATRICES}
)
_FENCES = frozenset({"fence", "membar"})  # memory is in order here; observers see them
# The exceptions of binding an instruction that has too few operands, or an illegal type.
_MALFORMED = (
    IndexError,
    ValueError,
    KeyError,
    AssertionError,
    AttributeError,
    TypeError,
    StopIteration,
)
# Opcodes that change nothing here.
_NOTHING = frozenset(
    {"prefetch", "prefetchu", "discard", "nanosleep", "pmevent"}
    | {"applypriority", "setmaxnreg", "griddepcontrol"}
)


@dataclass(frozen=True, slots=True)
class BoundBlock:
    """Some instructions that run one after the other.

    Attributes:
        first: the first instruction.
        instructions: all instructions of the block.
        runs: the instructions as functions, without control flow.
        count: the number of `instructions`.
        end: the last instruction, if it is one of control flow.
        next: the number of the instruction behind the block.
        together: True if threads of a warp execute `first` together.
    """

    first: PtxInstruction
    instructions: tuple[PtxInstruction, ...]
    runs: tuple[Run, ...]
    count: int
    end: PtxInstruction | None
    next: int
    together: bool


class BoundFunction:
    """A function of a program.

    Attributes:
        begin: the number of its first instruction.
        frame: the offsets in a frame of its parameters, its results, and those of its calls.
        local: the offsets of its local variables.
    """

    def __init__(
        self,
        function: PtxFunction,
        begin: int,
        names: Names,
        frame: SpaceLayout,
        local: SpaceLayout,
    ) -> None:
        self.function = function
        self.begin = begin
        self.names = names
        self.frame = frame
        self.local = local
        self.registers = NumberedRegisters(
            function.registers, _used_registers(function)
        )

    def unwritten_frame(self, threads: int, *, is_watched: bool) -> CallFrame:
        """Return a frame in which no register was written."""
        return CallFrame(
            self.function.name,
            self.registers.initial,
            -(-self.frame.bytes // 16) * 16,
            threads,
            is_watched=is_watched,
        )


class BoundProgram:
    """The functions of a module.

    Attributes:
        functions: by name.
    """

    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.functions: dict[str, BoundFunction] = {}
        self._code: list[PtxInstruction] = []
        self._owners: list[BoundFunction] = []
        self._starts: set[int] = set()
        self._blocks: dict[int, BoundBlock] = {}
        self._shared: dict[str, SpaceLayout] = {}
        for function in module.functions.values():
            self._add(function)

    def _add(self, function: PtxFunction) -> None:
        parameters = [one for one in function.variables if one.space == "param"]
        if not function.is_entry:
            parameters = [*function.results, *function.parameters, *parameters]
        frame = lay_out(parameters)
        local = lay_out(one for one in function.variables if one.space == "local")
        spaces = {one.name: one.space for one in self.module.variables}
        spaces |= {one.name: one.space for one in function.variables}
        shared = {one.name: one.name for one in _shared_of(self.module.variables)}
        for one in _shared_of(function.variables):
            shared[one.name] = f"{function.name}::{one.name}"
        shared = {key: one for key, one in shared.items() if spaces[key] == "shared"}
        names = Names(spaces, frame.offsets, local.offsets, shared)
        bound = BoundFunction(function, len(self._code), names, frame, local)
        self.functions[function.name] = bound
        self._starts.update(bound.begin + place for place in function.labels.values())
        self._code += function.instructions
        self._owners += [bound] * len(function.instructions)

    def shared_of(self, kernel: str) -> SpaceLayout:
        """Return the offsets of the shared variables that a kernel and its callees name.

        Variables of functions have the keys of `Names.shared`.
        """
        found = self._shared.get(kernel)
        if found is None:
            named: set[str] = set()
            own: list[Variable] = []
            for function in reached_functions(self.module, kernel):
                named.update(symbols_in(function))
                keys = self.functions[function.name].names.shared
                own += [
                    replace(one, name=keys[one.name])
                    for one in _shared_of(function.variables)
                ]
            outer = _shared_of(self.module.variables)
            found = lay_out([*(one for one in outer if one.name in named), *own])
            self._shared[kernel] = found
        return found

    def owner(self, number: int) -> BoundFunction:
        """Return the function of an instruction."""
        return self._owners[number]

    def instruction(self, number: int) -> PtxInstruction:
        """Return the instruction of a number."""
        return self._code[number]

    def block(self, number: int) -> BoundBlock:
        """Return the block that begins at an instruction."""
        found = self._blocks.get(number)
        if found is None:
            found = self._blocks[number] = self._bind(number)
        return found

    def _bind(self, number: int) -> BoundBlock:
        owner = self._owners[number]
        stop = owner.begin + len(owner.function.instructions)
        first = self._code[number]
        runs: list[Run] = []
        end: PtxInstruction | None = None
        at = number
        while at < stop:
            instruction = self._code[at]
            if at > number and (at in self._starts or _is_together(instruction)):
                break
            at += 1
            if instruction.opcode in CONTROL:
                _check_barrier(instruction)
                end = instruction
                break
            run = self._bound(instruction, owner)
            if run is not None:
                runs.append(run)
        return BoundBlock(
            first=first,
            instructions=tuple(self._code[number:at]),
            runs=tuple(runs),
            count=at - number,
            end=end,
            next=at,
            together=_is_together(first),
        )

    def _bound(self, instruction: PtxInstruction, owner: BoundFunction) -> Run | None:
        """Return an instruction as a function. Unsupported if it is malformed."""
        try:
            return self._run(instruction, owner)
        except Unsupported as error:
            if error.where is None:
                error.where = f"line {instruction.line}: {instruction.text}"
            raise
        except _MALFORMED as error:
            raise _malformed(instruction) from error

    def _run(self, instruction: PtxInstruction, owner: BoundFunction) -> Run | None:
        """Return an instruction as a function; None if it does nothing."""
        registers, names = owner.registers, owner.names
        opcode = instruction.opcode
        refuse(instruction)
        if opcode in _NOTHING:
            return None
        if opcode in _FENCES:
            return show_order
        run: Run | None
        if opcode in _WITH_MEMORY:
            run = _WITH_MEMORY[opcode](instruction, registers, names)
        elif opcode in TOGETHER:
            run = bind_together(instruction, registers)
        else:
            run = (
                bind_address_move(instruction, registers, names)
                if opcode == "mov"
                else None
            )
            if run is None:
                run = bind_rule(instruction, rule_of(instruction), registers)
        if instruction.predicate is None:
            return run
        return _predicated(instruction, run, registers)


def _malformed(instruction: PtxInstruction) -> Unsupported:
    return Unsupported(
        f"{instruction.opcode} does not have the operands or the type that it needs",
        where=f"line {instruction.line}: {instruction.text}",
        why="the PTX ISA has no such form, or it is not emulated",
        remedy="compare the instruction with its syntax in the PTX ISA",
    )


def _check_barrier(instruction: PtxInstruction) -> None:
    """Raise Unsupported for a barrier that lacks operands."""
    modifiers = instruction.modifiers
    if instruction.opcode not in ("bar", "barrier") or "cluster" in modifiers:
        return
    # A reduction has a result and a predicate besides the barrier.
    least = 3 if "red" in modifiers else 1
    if len(instruction.operands) < least:
        raise _malformed(instruction)


def _is_together(instruction: PtxInstruction) -> bool:
    """Return True for an instruction at which a thread waits for other threads of its warp."""
    is_warp_barrier = instruction.opcode == "bar" and "warp" in instruction.modifiers
    return is_warp_barrier or instruction.opcode in TOGETHER


def _shared_of(variables: Iterable[Variable]) -> list[Variable]:
    return [one for one in variables if one.space == "shared"]


_WITH_MEMORY: dict[str, Callable[[PtxInstruction, NumberedRegisters, Names], Run]] = {
    "ld": bind_load,
    "ldu": bind_load,
    "st": bind_store,
    "atom": bind_atomic,
    "red": bind_atomic,
    "cp": bind_async_copy,
    "mbarrier": bind_phase_barrier,
    **CLUSTERS,
    "cvta": bind_conversion_of_address,
    "isspacep": bind_space_test,
    **MATRICES,
}


def known_opcodes() -> frozenset[str]:
    """Return the opcodes of all instructions that the emulator knows."""
    return frozenset(
        {*OPCODES, *CONTROL, *TOGETHER, *_FENCES, *_NOTHING, *_WITH_MEMORY}
    )


def predicate_of(
    threads: BlockThreads, instruction: PtxInstruction, registers: NumberedRegisters
) -> np.ndarray:
    """Return True for the threads `at` that execute an instruction, by its predicate.

    Report undefined bits of the predicate.
    """
    assert instruction.predicate is not None
    number = registers.numbers[instruction.predicate.name]
    undefined = threads.read_undefined(number)
    if undefined is not None:
        threads.report_undefined(instruction, "a predicate", undefined)
    value = threads.read(number)
    return np.asarray(~value if instruction.is_negated else value)


def _predicated(
    instruction: PtxInstruction, run: Run, registers: NumberedRegisters
) -> Run:
    """Return `run` for the threads in which the predicate of its instruction holds."""

    def run_some(threads: BlockThreads) -> None:
        holds = predicate_of(threads, instruction, registers)
        if holds.ndim == 0 or holds.all():
            if holds.all():
                run(threads)
            else:
                _skip(threads, instruction, threads.size())
            return
        holds = threads.pick(holds)
        if not holds.all():
            _skip(threads, instruction, int(np.count_nonzero(~holds)))
        if not holds.any():
            return
        before = threads.at, threads.lanes
        some = threads.numbers()[holds]
        threads.at = threads.lanes = some
        try:
            run(threads)
        finally:
            threads.at, threads.lanes = before

    return run_some


def _skip(threads: BlockThreads, instruction: PtxInstruction, count: int) -> None:
    for observer in threads.around.observers:
        observer.skipped(threads, instruction, count)


def _used_registers(function: PtxFunction) -> list[str]:
    """Return the registers that a function names, each once, in their order."""
    found: dict[str, None] = {}
    for instruction in function.instructions:
        if instruction.predicate is not None:
            found[instruction.predicate.name] = None
        for operand in instruction.operands:
            for name in registers_in(operand):
                found[name] = None
    return [name for name in found if name in function.registers]
