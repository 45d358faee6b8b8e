"""The functions of CUDA's runtime that kernels call: printf, malloc, free, and failed assertions.

call.uni (%r1), vprintf, (%rd1, %rd2);      call.uni (%rd1), malloc, (%rd2);

Printed text is collected, and written to the standard output of the host when the launch ends. The
heap is the memory of the GPU. Memory that a kernel did not free stays allocated, since another
kernel may free it.

Source: NVIDIA, "CUDA C++ Programming Guide", sections "Formatted Output", "Assertion" and "Dynamic
Global Memory Allocation and Operations".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.findings import ASSERTION, HEAP
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import Allocation, Arena
from refcomp.emulator.ptx.execution.accesses import gathered
from refcomp.emulator.ptx.execution.printed_values import PrintFormat
from refcomp.emulator.ptx.execution.progress import LaunchStopped
from refcomp.emulator.ptx.machine.threads import BlockThreads
from refcomp.emulator.ptx.text.module import PtxInstruction

_HEAP_LABEL = "memory of malloc"
_MAX_TEXT = 1 << 12  # bytes of a text
# The parts of a format: flags, width, precision, size and type.
_FORMAT = re.compile(
    r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcsp%])"
)
_LONG = ("l", "ll", "z", "j", "t")


class RuntimeCall(NamedTuple):
    """A call by the threads that run.

    Attributes:
        values: for each argument its values, as unsigned integers [thread].
    """

    threads: BlockThreads
    instruction: PtxInstruction
    values: Sequence[Array]


class RuntimeFunction(NamedTuple):
    """A function of CUDA's runtime.

    Attributes:
        run: returns the result of a call for each thread; None for a function without a result.
        results: bytes of each result, by its declaration in CUDA's headers.
        parameters: bytes of each parameter, by its declaration in CUDA's headers.
    """

    run: Callable[[RuntimeCall], Array | None]
    results: tuple[int, ...]
    parameters: tuple[int, ...]


def _print(call: RuntimeCall) -> Array:
    formats, buffers = call.values
    numbers = call.threads.numbers()
    counts = np.zeros(len(numbers), np.uint32)
    texts: dict[int, str] = {}
    for place in range(len(numbers)):
        alone = _alone(call, numbers[place : place + 1])
        address = int(formats[place])
        if address not in texts:
            texts[address] = _text_at(alone, address)
        values = list(_arguments(alone, texts[address], int(buffers[place])))
        counts[place] = len(values)
        call.threads.around.printed.append(_formatted(texts[address], iter(values)))
    call.threads.at = call.threads.lanes = numbers
    return counts


def _alone(call: RuntimeCall, number: Array) -> RuntimeCall:
    """Let only one thread run."""
    call.threads.at = call.threads.lanes = number
    return call


def _item_at(call: RuntimeCall, address: int, size: int) -> int:
    """Return an item at a generic address, for the one thread that runs. Report undefined bits."""
    addresses = np.array([address], np.uint64)
    places = call.threads.places(call.instruction, addresses, "", size, is_load=True)
    value, undefined = gathered(call.threads, places, 0, size)
    if undefined is not None:
        call.threads.report_undefined(call.instruction, "what is printed", undefined)
    return int(value[0])


def _text_at(call: RuntimeCall, address: int) -> str:
    """Return the text at a generic address, up to its terminating byte 0."""
    found = bytearray()
    while len(found) < _MAX_TEXT:
        one = _item_at(call, address + len(found), 1)
        if not one:
            break
        found.append(one)
    return found.decode("utf-8", "replace")


def _arguments(call: RuntimeCall, text: str, buffer: int) -> Iterator[Any]:
    """Yield the arguments of a format. In memory, each follows the one before, aligned."""
    place = buffer
    for found in _FORMAT.finditer(text):
        _, width, precision, length, kind = found.groups()
        if kind == "%":
            continue
        for _ in [one for one in (width, precision) if one == "*"]:
            place = -(-place // 4) * 4
            yield _signed(_item_at(call, place, 4), 32)
            place += 4
        size = 4 if kind in "diouxXc" and length not in _LONG else 8
        place = -(-place // size) * size
        bits = _item_at(call, place, size)
        place += size
        if kind in "eEfFgGaA":
            yield float(np.uint64(bits).view(np.float64))
        elif kind == "s":
            yield _text_at(call, bits)
        elif kind in "di":
            narrow = {"h": 16, "hh": 8}.get(length, 8 * size)
            yield _signed(bits & (1 << narrow) - 1, narrow)
        else:
            narrow = {"h": 16, "hh": 8}.get(length, 8 * size)
            yield bits & (1 << narrow) - 1


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits


def _formatted(text: str, values: Iterator[Any]) -> str:
    """Return a text in which each format is replaced by its value, as C's printf does."""

    def replaced(found: re.Match[str]) -> str:
        flags, width, precision, _, kind = found.groups()
        if kind == "%":
            return "%"
        least = next(values) if width == "*" else int(width or 0)
        digits = None
        if "." in found.group():
            digits = next(values) if precision == "*" else int(precision or 0)
        return PrintFormat(flags, least, digits, kind).text(next(values))

    return _FORMAT.sub(replaced, text)


def heap_allocations(arena: Arena) -> list[Allocation]:
    """Return the memory that kernels got by malloc and did not free, by address."""
    return [one for one in arena.allocations() if one.label == _HEAP_LABEL]


def _allocate(call: RuntimeCall) -> Array:
    (sizes,) = call.values
    arena = call.threads.around.arena
    found = np.zeros(len(sizes), np.uint64)
    for place, size in enumerate(sizes.tolist()):
        one = arena.allocate(max(size, 1), _HEAP_LABEL)
        found[place] = 0 if one is None else one.address
    for observer in call.threads.around.observers:
        observer.grew(arena.extent())
    return found


def _free(call: RuntimeCall) -> None:
    (addresses,) = call.values
    arena = call.threads.around.arena
    for place, address in enumerate(addresses.tolist()):
        if not address:
            continue
        owner = arena.allocation_at(address)
        is_begin = owner is not None and owner.address == address
        if owner is None or not is_begin or owner.label != _HEAP_LABEL:
            what = f"frees {address:#x}, which malloc has not returned"
        elif owner.is_free:
            what = "frees memory that was freed before"
        else:
            arena.free(address)
            continue
        wrong = np.arange(len(addresses)) == place
        call.threads.report(HEAP, call.instruction, what, wrong)


def _fail(call: RuntimeCall) -> None:
    """Report a failed assertion, and stop the launch, as CUDA does."""
    threads = call.threads
    numbers = threads.numbers()
    alone = _alone(call, numbers[:1])
    message, file, line, function = (int(one[0]) for one in call.values[:4])
    what = (
        f"the assertion `{_text_at(alone, message)}` failed in {_text_at(alone, file)}, line "
        f"{line}, function {_text_at(alone, function)}"
    )
    threads.at = threads.lanes = numbers
    threads.report(ASSERTION, call.instruction, what, np.ones(len(numbers), np.bool_))
    raise LaunchStopped


RUNTIME_FUNCTIONS: dict[str, RuntimeFunction] = {
    "vprintf": RuntimeFunction(_print, (4,), (8, 8)),
    "malloc": RuntimeFunction(_allocate, (8,), (8,)),
    "free": RuntimeFunction(_free, (), (8,)),
    "__assertfail": RuntimeFunction(_fail, (), (8, 8, 4, 8, 8)),
}
