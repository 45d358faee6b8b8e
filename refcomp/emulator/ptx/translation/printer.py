"""Prints the function of a kernel. It runs one thread until the thread waits, ends or bails out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from refcomp.emulator.ptx.instructions.types import bits_of
from refcomp.emulator.ptx.machine.spaces import WINDOWS
from refcomp.emulator.ptx.text.module import (
    PtxFunction,
    PtxInstruction,
    Register,
    SymbolAddress,
    registers_in,
)
from refcomp.emulator.ptx.translation.accesses import ThreadAccesses, access_of
from refcomp.emulator.ptx.translation.atomics import print_atomic
from refcomp.emulator.ptx.translation.emitter import (
    FRAME_EXCHANGED,
    FRAME_MASK,
    FRAME_NUMBER,
    PlacedNames,
    ThreadText,
    type_of,
    width_of,
)
from refcomp.emulator.ptx.translation.flow import FlowBlock, FunctionFlow
from refcomp.emulator.ptx.translation.refusal import NotTranslated, refusing
from refcomp.emulator.ptx.translation.texts import expanded, module_head
from refcomp.emulator.ptx.translation.values import (
    is_arithmetic,
    keeps_lazy,
    print_value,
)
from refcomp.emulator.ptx.translation.warps import TOGETHER, WarpPrinter

_RUNS, _WAITS, _GATHERS, _ENDED, _TROUBLE = range(5)
_TURN = 1 << 20  # instructions after which another thread of the block runs
_LAST_BARRIER = 15  # the greatest number of a barrier of a block
_MAX_BITS = 64  # of a register
_NOTHING = frozenset(
    {"prefetch", "prefetchu", "discard", "nanosleep", "membar", "fence", "pmevent"}
)
_SPACES = ("global", "shared", "local", "const", "param")
# Fields that all functions load first.
_LOADED = (
    "arena",
    "arena.known",
    "base",
    "shared",
    "shared.known",
    "shared.limit",
    "local",
    "local.known",
    "local.limit",
    "local.stride",
    "symbols",
    "windows",
)


@dataclass(frozen=True, slots=True)
class TranslatedKernel:
    """The text of a kernel.

    Attributes:
        symbols: the variables and parameters whose addresses are its arguments, in order.
        windows: the number of windows that it uses.
        frame_words: the number of i64 words in a thread's frame.
        may_wait: True if it has an `atom`, by which a thread can wait for another one in a loop.
            Translated code runs block after block, and gives such a block back to the interpreter
            after fewer steps. The guess is neither sound nor complete, and costs only time.
            *False positives*: updates whose results nothing waits for, such as those of a counter.
            *False negatives*: loops of plain loads. Loads that are volatile or ordered are not
            translated, so they need no guess.
    """

    text: str
    symbols: tuple[str, ...]
    windows: int
    frame_words: int
    may_wait: bool


def print_kernel(
    function: PtxFunction, names: PlacedNames, *, is_watched: bool
) -> TranslatedKernel:
    """Return a kernel as LLVM IR. Raises NotTranslated if an instruction is not translated."""
    return _KernelPrinter(function, names, is_watched=is_watched).print()


class _KernelPrinter:
    """Prints one kernel."""

    def __init__(
        self, function: PtxFunction, names: PlacedNames, *, is_watched: bool
    ) -> None:
        self._flow = FunctionFlow(function)
        unsure = self._flow.unsure
        self._unsure = [n for n, bit in self._flow.numbers.items() if unsure >> bit & 1]
        self._text = ThreadText(
            _types_of(function, self._flow),
            names,
            is_watched=is_watched,
            lazy=_lazy_registers(function),
            unsure=self._unsure,
        )
        self._accesses = ThreadAccesses(self._text)
        self._warps = WarpPrinter(self._text)
        self._kept: dict[
            str, int
        ] = {}  # register -> its word behind the exchanged ones
        self._resumed: list[int] = []  # the places where threads resume, in order
        self._live = 0

    def print(self) -> TranslatedKernel:
        for begin, block in self._flow.blocks.items():
            self._print_block(begin, block)
        if 0 not in self._flow.blocks:
            self._text.label("b0")
            self._leave(_ENDED)
        own = expanded(self._function() + self._warps.function())
        text = module_head(self._text.is_watched) + own
        words = FRAME_EXCHANGED + self._warps.words + len(self._kept)
        return TranslatedKernel(
            _with_kept_words(text, FRAME_EXCHANGED + self._warps.words),
            tuple(self._text.symbols),
            self._text.windows,
            words,
            any(one.opcode == "atom" for one in self._flow.code),
        )

    # Blocks.

    def _print_block(self, begin: int, block: FlowBlock) -> None:
        text = self._text
        text.label(f"b{begin}")
        text.forget()
        self._accesses.forget()
        steps = text.let("load i64, ptr %steps")
        text.put(
            f"store i64 {text.let(f'add i64 {steps}, {block.end - begin}')}, ptr %steps"
        )
        code = self._flow.code
        for number in range(begin, block.end):
            instruction = code[number]
            with refusing(instruction):
                if instruction.opcode in ("bra", "brx", "ret", "exit", "trap"):
                    self._print_end(block, instruction)
                    return
                self._print_instruction(block, number)
        self._finish(block)
        if block.following:
            text.put(f"br label %b{block.following[0]}")
        else:
            self._leave(_ENDED)

    def _finish(self, block: FlowBlock) -> None:
        """Store the registers that are live at the end of a block."""
        self._accesses.settle()
        live = self._flow.live_before(block, block.end)
        numbers = self._flow.numbers
        self._text.flush(lambda name: bool(live >> numbers[name] & 1))

    def _print_instruction(self, block: FlowBlock, number: int) -> None:
        instruction = self._flow.code[number]
        if instruction.opcode in _NOTHING:
            return
        if instruction.opcode in ("bar", "barrier") or instruction.opcode in TOGETHER:
            self._print_wait(block, number)
            return
        if instruction.predicate is None:
            self._print_plain(instruction, self._following(block, number))
            return
        condition = self._condition(instruction)
        self._accesses.settle()
        self._accesses.forget()
        with self._text.only_if(condition):
            self._print_plain(instruction, ())
            self._accesses.settle()
        self._accesses.forget()

    def _following(self, block: FlowBlock, number: int) -> Iterable[PtxInstruction]:
        """Yield the instructions after number `number`, up to the first where threads wait."""
        for place in range(number + 1, block.end):
            one = self._flow.code[place]
            if one.opcode in ("bar", "barrier") or one.opcode in TOGETHER:
                return
            yield one

    def _condition(self, instruction: PtxInstruction) -> str:
        assert instruction.predicate is not None
        value = self._text.value_of(instruction.predicate.name)
        if instruction.is_negated:
            return self._text.let(f"xor i1 {value}, true")
        return value

    def _print_plain(
        self, instruction: PtxInstruction, following: Iterable[PtxInstruction]
    ) -> None:
        if instruction.opcode in ("ld", "ldu", "st"):
            self._accesses.put(access_of(instruction), following)
        elif instruction.opcode in ("atom", "red"):
            print_atomic(self._text, self._accesses, instruction)
        elif instruction.opcode == "cvta":
            self._print_address_conversion(instruction)
        else:
            print_value(self._text, instruction)

    def _print_address_conversion(self, instruction: PtxInstruction) -> None:
        """Print cvta, which converts between generic addresses and those of a space."""
        text, modifiers = self._text, instruction.modifiers
        kind = f"u{modifiers[-1][1:]}"
        space = next((one for one in modifiers if one in _SPACES), None)
        if space is None:
            raise NotTranslated(instruction)
        operand = instruction.operands[1]
        if isinstance(operand, SymbolAddress):
            value = text.symbol_address(operand.symbol, operand.offset, space)
        else:
            value = text.operand(instruction, operand, "u64")
        window = WINDOWS.get(space, 0)
        if window:
            verb = "sub" if "to" in modifiers else "add"
            value = text.let(f"{verb} i64 {value}, {window}")
        value = text.as_type(value, "i64", type_of(kind))
        text.result(instruction, instruction.operands[0], kind, value)

    # Ends of blocks.

    def _print_end(self, block: FlowBlock, instruction: PtxInstruction) -> None:
        text = self._text
        if instruction.opcode == "brx":
            raise NotTranslated(instruction)
        condition = None
        if instruction.predicate is not None:
            condition = self._condition(instruction)
        self._finish(block)
        taken = text.fresh_label("taken")
        if condition is not None:
            rest = (
                block.following[-1]
                if len(block.following) > (instruction.opcode == "bra")
                else None
            )
            other = f"b{rest}" if rest is not None else "ended"
            text.put(f"br i1 {condition}, label %{taken}, label %{other}")
        else:
            text.put(f"br label %{taken}")
        text.label(taken)
        if instruction.opcode == "trap":
            self._leave(_TROUBLE)
        elif instruction.opcode != "bra":
            self._leave(_ENDED)
        else:
            self._branch(block, self._flow.target(instruction))

    def _branch(self, block: FlowBlock, target: int) -> None:
        """Print a branch. After many instructions, a backward branch yields to other threads."""
        text = self._text
        if target > block.begin:
            text.put(f"br label %b{target}")
            return
        steps = text.let("load i64, ptr %steps")
        is_late = text.let(f"icmp ugt i64 {steps}, {_TURN}")
        late = text.fresh_label("late")
        text.put(f"br i1 {is_late}, label %{late}, label %b{target}, !prof !0")
        text.label(late)
        text.forget()
        self._suspend(self._flow.live_in[target], _RUNS)
        text.put(f"br label %b{target}")

    def _leave(self, status: int) -> None:
        self._text.put(f"store i64 {status}, ptr %status")
        self._text.put("br label %leave")

    # Where threads wait.

    def _print_wait(self, block: FlowBlock, number: int) -> None:
        """Print an instruction for which a thread waits for others."""
        instruction = self._flow.code[number]
        text = self._text
        if instruction.predicate is None:
            self._wait(block, number)
            return
        condition = self._condition(instruction)
        self._accesses.settle()
        with text.only_if(condition):
            self._wait(block, number)
        text.forget()
        self._accesses.forget()

    def _wait(self, block: FlowBlock, number: int) -> None:
        instruction = self._flow.code[number]
        is_barrier = instruction.opcode in ("bar", "barrier")
        self._accesses.settle()
        live = self._flow.live_before(block, number + 1)
        if is_barrier and "warp" not in instruction.modifiers:
            self._word(FRAME_NUMBER, self._barrier(instruction))
            self._suspend(live, _WAITS)
        else:
            number_of_step, mask = self._warps.offer(instruction)
            self._word(FRAME_NUMBER, str(number_of_step))
            self._word(FRAME_MASK, mask)
            self._suspend(live, _GATHERS)
            self._warps.collect(instruction)
        self._accesses.forget()

    def _barrier(self, instruction: PtxInstruction) -> str:
        """Return the number of a barrier for all threads of a block."""
        if len(instruction.operands) != 1 or "red" in instruction.modifiers:
            raise NotTranslated(instruction)
        if "arrive" in instruction.modifiers:
            raise NotTranslated(instruction)
        value = self._text.operand(instruction, instruction.operands[0], "u32")
        self._text.stop_if(self._text.let(f"icmp ugt i32 {value}, {_LAST_BARRIER}"))
        return self._text.as_type(value, "i32", "i64")

    def _word(self, number: int, value: str) -> None:
        place = self._text.let(f"getelementptr i64, ptr %frame, i64 {number}")
        self._text.put(f"store i64 {value}, ptr {place}")

    def _suspend(self, live: int, status: int) -> None:
        """Print the code that stores live registers, returns, and resumes here at the next call."""
        text = self._text
        names = [name for name, bit in self._flow.numbers.items() if live >> bit & 1]
        for name in names:
            kind = text.types[name]
            value = text.values.get(name) or text.let(
                f"load {kind}, ptr {text.place_of(name)}"
            )
            text.put(f"store {kind} {value}, ptr {self._kept_place(name)}")
            if name in text.unsure:
                flag = text.let(f"load i1, ptr {text.flag_of(name)}")
                text.put(f"store i1 {flag}, ptr {self._kept_place(f'{name}?')}")
        number = len(self._resumed) + 1
        self._resumed.append(number)
        self._word(0, str(number))
        self._leave(status)
        text.label(f"resume{number}")
        text.forget()
        for name in names:
            kind = text.types[name]
            value = text.let(f"load {kind}, ptr {self._kept_place(name)}")
            text.put(f"store {kind} {value}, ptr {text.place_of(name)}")
            if name in text.unsure:
                flag = text.let(f"load i1, ptr {self._kept_place(f'{name}?')}")
                text.put(f"store i1 {flag}, ptr {text.flag_of(name)}")

    def _kept_place(self, name: str) -> str:
        word = self._kept.setdefault(name, len(self._kept))
        return self._text.let(f"getelementptr i64, ptr %frame, i64 $kept({word})")

    # The whole function.

    def _function(self) -> str:
        text = self._text
        flags = [name for name in self._unsure if name in text.unsure]
        lines = [
            "define internal i64 @kernel(ptr %ctx, ptr %frame, i64 %thread) {",
            "entry:",
        ]
        lines += [f"  %{name} = field {name}" for name in _LOADED]
        lines += ["  %local.begin = mul i64 %local.stride, %thread"]
        lines += [
            "  %steps = alloca i64",
            "  store i64 0, ptr %steps",
            "  %status = alloca i64",
        ]
        lines += [
            f"  {text.place_of(name)} = alloca {kind}"
            for name, kind in text.types.items()
        ]
        for name in self._unsure:
            zero = "0" if text.types[name][0] == "i" else "0.0"
            lines.append(
                f"  store {text.types[name]} {zero}, ptr {text.place_of(name)}"
            )
        for name in flags:
            lines += [
                f"  {text.flag_of(name)} = alloca i1",
                f"  store i1 false, ptr {text.flag_of(name)}",
            ]
        lines += text.prologue
        lines += ["  %pc = load i64, ptr %frame", "  switch i64 %pc, label %b0 ["]
        lines += [
            f"    i64 {number}, label %resume{number}" for number in self._resumed
        ]
        lines += ["  ]", *text.lines]
        lines += ["ended:", f"  store i64 {_ENDED}, ptr %status", "  br label %leave"]
        lines += [
            "trouble:",
            f"  store i64 {_TROUBLE}, ptr %status",
            "  br label %leave",
        ]
        lines += ["leave:", "  %result = load i64, ptr %status"]
        lines += ["  %taken = load i64, ptr %steps", "  %all.p = address steps"]
        lines += ["  %all = load i64, ptr %all.p", "  %sum = add i64 %all, %taken"]
        lines += ["  store i64 %sum, ptr %all.p", "  ret i64 %result", "}"]
        lines += ['!0 = !{!"branch_weights", i32 1, i32 100000}']
        lines += ['!1 = !{!"branch_weights", i32 100000, i32 1}']
        return "\n".join(lines) + "\n"


def _with_kept_words(text: str, first: int) -> str:
    """Return a text with the numbers of the words that hold registers in frames."""
    parts = text.split("$kept(")
    found = [parts[0]]
    for part in parts[1:]:
        number, _, rest = part.partition(")")
        found.append(f"{first + int(number)}{rest}")
    return "".join(found)


def _types_of(function: PtxFunction, flow: FunctionFlow) -> dict[str, str]:
    """Return the type of each register that a function uses."""
    used = 0
    for number in range(len(flow.code)):
        used |= flow.reads[number] | flow.writes[number]
    floats = {
        one.operands[0].name
        for one in function.instructions
        if is_arithmetic(one) and isinstance(one.operands[0], Register)
    }
    found = {}
    for name, kind in function.registers.items():
        if used >> flow.numbers[name] & 1:
            if bits_of(kind) > _MAX_BITS:
                raise NotTranslated(flow.first_use(name), f"a register of .{kind}")
            is_float = name in floats and width_of(type_of(kind)) == 32
            plain = (
                type_of(kind)
                if kind in ("f32", "f64", "pred")
                else f"i{width_of(type_of(kind))}"
            )
            found[name] = "float" if is_float else plain
    return found


def _lazy_registers(function: PtxFunction) -> frozenset[str]:
    """Return the registers that are written only by arithmetic of f32 and moves of its results."""
    writers: dict[str, list[PtxInstruction]] = {}
    for one in function.instructions:
        if one.operands and one.opcode not in ("st", "bra"):
            for name in registers_in(one.operands[0]):
                writers.setdefault(name, []).append(one)
    lazy = {
        name
        for name, ones in writers.items()
        if (
            function.registers.get(name) in ("f32", "b32")
            and any(is_arithmetic(one) for one in ones)
        )
        or function.registers.get(name) == "f32"
    }
    while True:
        kept = {
            name
            for name in lazy
            if all(
                is_arithmetic(one) or keeps_lazy(one) in ("", *lazy)
                for one in writers.get(name, ())
            )
        }
        if kept == lazy:
            return frozenset(kept)
        lazy = kept
