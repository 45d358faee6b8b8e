"""Control flow and liveness in a function: its blocks, and the registers that are live in them.

A predicated instruction writes a register only in some threads. So the earlier value of the
register stays live. A set of registers is an integer with a bit for each register, since functions
have thousands of registers and of sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from refcomp.emulator.ptx.text.module import (
    LabelName,
    PtxFunction,
    PtxInstruction,
    registers_in,
)
from refcomp.emulator.ptx.translation.refusal import refusing

_WITHOUT_RESULT = frozenset(
    {"st", "red", "bra", "brx", "bar", "barrier", "ret", "exit", "trap", "membar"}
    | {"fence", "prefetch", "prefetchu", "cp", "nanosleep", "discard", "stmatrix"}
)
_LOOP_TURNS = 8  # iterations of a loop, by an estimate
_MAX_DEPTH = 3  # nested loops that the estimate takes into account
_LEAVES = frozenset({"ret", "exit", "trap"})
_BRANCHES = frozenset({"bra", "brx", *_LEAVES})


@dataclass(frozen=True, slots=True)
class FlowBlock:
    """Instructions `begin` to `end` - 1, which run one after the other."""

    begin: int
    end: int
    following: tuple[int, ...]  # begins of the blocks that may come next


class FunctionFlow:
    """The control flow of a function. Raises NotTranslated for a branch without a target.

    Attributes:
        blocks: the blocks by the number of their first instruction, in order.
        numbers: register -> the number of its bit in sets of registers.
    """

    def __init__(self, function: PtxFunction) -> None:
        self.function = function
        self.code: Sequence[PtxInstruction] = function.instructions
        self.numbers = {name: n for n, name in enumerate(function.registers)}
        self.blocks: dict[int, FlowBlock] = {}
        self._divide()

    def _divide(self) -> None:
        code = self.code
        starts = {0, *self.function.labels.values()}
        starts.update(n + 1 for n, one in enumerate(code) if one.opcode in _BRANCHES)
        ordered = sorted(one for one in starts if one < len(code))
        for begin, end in zip(ordered, [*ordered[1:], len(code)], strict=True):
            with refusing(code[end - 1]):
                following = self._following(end)
            self.blocks[begin] = FlowBlock(begin, end, following)

    def _following(self, end: int) -> tuple[int, ...]:
        last = self.code[end - 1]
        falls = () if end >= len(self.code) else (end,)
        if last.opcode == "bra":
            target = (self.target(last),)
            return target if last.predicate is None else (*target, *falls)
        if last.opcode == "brx":
            targets = tuple(self.targets(last))
            return targets if last.predicate is None else (*targets, *falls)
        if last.opcode in _LEAVES and last.predicate is None:
            return ()
        return falls

    def target(self, branch: PtxInstruction) -> int:
        """Return the number of the instruction to which a branch leads."""
        label = branch.operands[0]
        assert isinstance(label, LabelName)
        return self.function.labels[label.name]

    def targets(self, branch: PtxInstruction) -> list[int]:
        """Return the possible targets of a branch by an index."""
        names = self.function.branch_targets[str(branch.operands[1])]
        return [self.function.labels[name] for name in names]

    def _bits(self, names: Iterator[str]) -> int:
        found = 0
        for name in names:
            number = self.numbers.get(name)
            if number is not None:
                found |= 1 << number
        return found

    @cached_property
    def writes(self) -> list[int]:
        """The registers that each instruction writes, perhaps only in some threads."""
        return [
            0
            if one.opcode in _WITHOUT_RESULT or not one.operands
            else self._bits(registers_in(one.operands[0]))
            for one in self.code
        ]

    @cached_property
    def reads(self) -> list[int]:
        """The registers that each instruction reads, with its predicate."""
        found = []
        for one in self.code:
            sources = (
                one.operands if one.opcode in _WITHOUT_RESULT else one.operands[1:]
            )
            bits = 0
            for operand in sources:
                bits |= self._bits(registers_in(operand))
            if one.predicate is not None:
                bits |= self._bits(registers_in(one.predicate))
            found.append(bits)
        return found

    def first_use(self, register: str) -> PtxInstruction:
        """Return the number of the first instruction that reads or writes a register."""
        number = self.numbers[register]
        sets = zip(self.code, self.reads, self.writes, strict=True)
        return next(
            one for one, reads, writes in sets if (reads | writes) >> number & 1
        )

    @cached_property
    def live_in(self) -> dict[int, int]:
        """The begin of a block -> the registers that are live there."""
        found = dict.fromkeys(self.blocks, 0)
        changed = True
        while changed:
            changed = False
            for begin, block in reversed(self.blocks.items()):
                bits = self.live_before(block, begin, found)
                if bits != found[begin]:
                    found[begin] = bits
                    changed = True
        return found

    def live_before(
        self, block: FlowBlock, place: int, live_in: dict[int, int] | None = None
    ) -> int:
        """Return the registers that are live before an instruction of a block, or at its end."""
        known = self.live_in if live_in is None else live_in
        bits = 0
        for one in block.following:
            bits |= known[one]
        for number in range(block.end - 1, place - 1, -1):
            if self.code[number].predicate is None:
                bits &= ~self.writes[number]
            bits |= self.reads[number]
        return bits

    @cached_property
    def weight(self) -> int:
        """An estimate of the instructions that a thread runs: each loop runs 8 times.

        A loop reaches from its head to the last branch back to it. Of nested loops, the outer three
        are taken into account.
        """
        ends: dict[
            int, int
        ] = {}  # head of a loop -> the end: behind the last branch to the head
        for block in self.blocks.values():
            for head in block.following:
                if head <= block.begin:
                    ends[head] = block.end
        changes = [0] * (len(self.code) + 1)
        for head, end in ends.items():
            changes[head] += 1
            changes[end] -= 1
        depths = accumulate(changes[:-1])
        turns: int = sum(_LOOP_TURNS ** min(one, _MAX_DEPTH) for one in depths)
        return turns

    @cached_property
    def unsure(self) -> int:
        """The registers that some instruction may read before anything wrote them."""
        everything = (1 << len(self.numbers)) - 1
        sure = dict.fromkeys(self.blocks, everything)
        sure[0] = 0
        found = 0
        changed = True
        while changed:
            changed = False
            found = 0
            for begin, block in self.blocks.items():
                bits = sure[begin]
                for number in range(begin, block.end):
                    found |= self.reads[number] & ~bits
                    if self.code[number].predicate is None:
                        bits |= self.writes[number]
                for one in block.following:
                    if sure[one] & ~bits:
                        sure[one] &= bits
                        changed = True
        return found
