"""Instructions that the threads of a warp execute together, as LLVM IR.

A thread writes its operands into its frame and returns. When all threads that the instruction names
have arrived, `@gather` calls `@together`, which writes the results into their frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refcomp.emulator.ptx.text.module import Operand, PtxInstruction
from refcomp.emulator.ptx.translation.emitter import (
    FRAME_EXCHANGED,
    ThreadText,
    type_of,
)
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.emulator.ptx.translation.texts import frame
from refcomp.emulator.ptx.translation.values import flat

TOGETHER = frozenset(
    {"shfl", "vote", "match", "redux", "activemask", "elect", "mma", "wmma", "ldmatrix"}
    | {"stmatrix", "movmatrix"}
)
_MODES = ("up", "down", "bfly", "idx")


@dataclass(frozen=True, slots=True)
class WarpStep:
    """An instruction of a warp.

    Attributes:
        function: the name of its function; "" if it only synchronizes the threads.
        text: the text of this function.
        sources: the operands that are exchanged, with their types.
        results: the results, with their types.
        members: the operand that is the mask of the threads which take part.
    """

    function: str
    text: str
    sources: tuple[tuple[Operand | None, str], ...]
    results: tuple[tuple[Operand | None, str], ...]
    members: Operand | None


class WarpPrinter:
    """Prints instructions of warps, and the function that executes them.

    Attributes:
        words: the number of words of a frame for operands and results.
    """

    def __init__(self, text: ThreadText) -> None:
        self._text = text
        self.words = 0
        self._numbers: dict[str, int] = {"": 0}  # function -> its number
        self._texts: dict[str, str] = {}

    def offer(self, instruction: PtxInstruction) -> tuple[int, str]:
        """Print the operands. Return the number of the step, and the mask of its members."""
        step = step_of(instruction)
        text = self._text
        mask = text.operand(instruction, step.members, "b32")
        for number, (operand, kind) in enumerate(step.sources):
            value = text.operand(instruction, operand, kind)
            if kind == "s32":
                wide = text.let(f"sext i32 {value} to i64")
            else:
                wide = text.as_type(value, type_of(kind), "i64")
            text.put(f"store i64 {wide}, ptr {self._place(number)}")
        self.words = max(self.words, len(step.sources) + len(step.results))
        if step.function not in self._numbers:
            self._numbers[step.function] = len(self._numbers)
            self._texts[step.function] = step.text
        return self._numbers[step.function], text.as_type(mask, "i32", "i64")

    def collect(self, instruction: PtxInstruction) -> None:
        """Print the reading of results."""
        step = step_of(instruction)
        text = self._text
        for number, (operand, kind) in enumerate(step.results):
            wide = text.let(f"load i64, ptr {self._place(len(step.sources) + number)}")
            value = text.as_type(wide, "i64", type_of(kind))
            text.result(instruction, operand, kind, value)

    def _place(self, number: int) -> str:
        word = FRAME_EXCHANGED + number
        return self._text.let(f"getelementptr i64, ptr %frame, i64 {word}")

    def function(self) -> str:
        """Return the functions of all steps of the kernel, and the function that calls them."""
        text: str = frame("warps")["word"].replace("$exchanged", str(FRAME_EXCHANGED))
        text += "".join(self._texts.values())
        lines = [
            "define internal i1 @together(ptr %ctx, ptr %warp, i64 %stride, i64 %group, "
            "i64 %number) {",
            "  switch i64 %number, label %none [",
        ]
        called = {name: n for name, n in self._numbers.items() if name}
        lines += [f"    i64 {number}, label %do{number}" for number in called.values()]
        lines += ["  ]"]
        for name, number in called.items():
            call = f"call i1 @{name}(ptr %warp, i64 %stride, i64 %group)"
            lines += [
                f"do{number}:",
                f"  %is{number} = {call}",
                f"  ret i1 %is{number}",
            ]
        lines += ["none:", "  ret i1 true", "}"]
        return text + "\n".join(lines) + "\n"


def step_of(instruction: PtxInstruction) -> WarpStep:
    """Return an instruction of a warp. Raises NotTranslated if it is not translated."""
    find = _STEPS.get(instruction.opcode)
    is_sync = "sync" in instruction.modifiers or instruction.opcode == "bar"
    if find is None or not is_sync:
        raise NotTranslated(instruction)
    return find(instruction)


def _shuffle(instruction: PtxInstruction) -> WarpStep:
    mode = _one_of(instruction, _MODES, ("sync", "b32"))
    target, value, amount, limits, members = instruction.operands
    table = frame("warps")
    text = table["shfl"].replace("$mode", mode).replace("$lane", table["lane"][mode])
    return WarpStep(
        f"shuffle.{mode}",
        text.replace("$compare", table["compare"][mode]),
        ((value, "b32"), (amount, "b32"), (limits, "b32")),
        tuple(zip(flat(target), ("b32", "pred"), strict=False)),
        members,
    )


def _vote(instruction: PtxInstruction) -> WarpStep:
    mode = _one_of(
        instruction, ("all", "any", "uni", "ballot"), ("sync", "pred", "b32")
    )
    target, value, members = instruction.operands
    text = _of_all(mode, "ballot", "zext i1 %low to i64", mode)
    kind = "b32" if mode == "ballot" else "pred"
    return WarpStep(f"all.{mode}", text, ((value, "pred"),), ((target, kind),), members)


def _reduction(instruction: PtxInstruction) -> WarpStep:
    names = ("add", "min", "max", "and", "or", "xor")
    kind = instruction.modifiers[-1]
    name = _one_of(instruction, names, ("sync", "u32", "s32", "b32"))
    target, value, members = instruction.operands
    step = f"{name}.{kind}" if name in ("min", "max") else name
    begin = {"and": "-1", "min": "4294967295", "max": "0"}.get(name, "0")
    if kind == "s32":
        begin = {"min": "2147483647", "max": "-2147483648"}.get(name, begin)
    text = _of_all(f"{name}.{kind}", step, "add i64 %wide, 0", "ballot", begin)
    return WarpStep(
        f"all.{name}.{kind}", text, ((value, kind),), ((target, kind),), members
    )


def _of_all(name: str, step: str, extend: str, result: str, begin: str = "0") -> str:
    """Return a function that computes one result from the values of all threads."""
    table = frame("warps")
    text = table["all"].replace("$name", name).replace("$begin", begin)
    text = text.replace("$step", table["step"][step])
    if "%low" in extend:
        text = text.replace(
            "%value = $extend", f"%low = trunc i64 %wide to i1\n  %value = {extend}"
        )
    text = text.replace("$extend", extend)
    whole: str = text.replace("$result", table["result"][result])
    return whole


def _warp_barrier(instruction: PtxInstruction) -> WarpStep:
    """Return bar.warp.sync, which only synchronizes the threads."""
    return WarpStep("", "", (), (), instruction.operands[0])


def _one_of(
    instruction: PtxInstruction, names: Sequence[str], others: Sequence[str]
) -> str:
    found = [one for one in instruction.modifiers if one in names]
    if len(found) != 1 or not {*names, *others}.issuperset(instruction.modifiers):
        raise NotTranslated(instruction)
    return found[0]


_STEPS: dict[str, Callable[[PtxInstruction], WarpStep]] = {
    "shfl": _shuffle,
    "vote": _vote,
    "redux": _reduction,
    "bar": _warp_barrier,
}
