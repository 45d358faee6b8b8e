"""PTX, as `refcomp emulate` lists and runs its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from refcomp.cli.kernel_arguments import ARGUMENT_FORMS, GivenArgument
from refcomp.cli.kernel_file import KernelOutcome, KernelRequest
from refcomp.cli.kernel_listing import (
    KernelListing,
    ListedArgument,
    ListedKernel,
    plain_name,
)
from refcomp.driver.host_tools import kernel_tools
from refcomp.emulator.observers.counting import Profile
from refcomp.emulator.observers.hazards import HAZARDS
from refcomp.emulator.ptx.execution.launch import (
    THREADS_LIMIT,
    PtxReport,
    find_kernel,
)
from refcomp.emulator.ptx.ledger import not_compared_in
from refcomp.emulator.ptx.observers.counting import ThreadCounting
from refcomp.emulator.ptx.run import Argument, EmulatedNvidiaGpu
from refcomp.emulator.ptx.text.module import (
    PtxFunction,
    PtxInstruction,
    PtxModule,
    Variable,
)
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.compute_capability import capability_of
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.local_memory import LocalMemory
from refcomp.profile.cards import find_card
from refcomp.profile.report import report_of

_ADDRESS = 8  # bytes
_DTYPES = {"s": "i", "u": "u", "b": "u", "f": "f"}  # letter of a PTX type -> of a dtype
_MAX_NAMES = 5  # that a message lists
# The hazard that NVIDIA GPUs do not have.
_NOT_ON_NVIDIA = "wait-states"


class PtxKernels:
    """The kernels of a PTX file.

    Args:
        data: the file.
        file: its name, for messages.

    Raises:
        DamagedPtx: it is not PTX.
        Unsupported: it is, with something that is not emulated.
        UserError: it has no kernels.
    """

    def __init__(self, data: bytes, file: str) -> None:
        self._text = data.rstrip(b"\0").decode("utf-8", "replace")
        self._file = file
        with self._named():
            self._module = read_ptx(self._text)
        self.listing = listing_of(self._module)
        if not self.listing.kernels:
            raise _without_kernels(self._module, file)

    def find(self, name: str) -> ListedKernel:
        find_kernel(self._module, name)  # raises
        return self.listing.kernels[name]

    def run(self, request: KernelRequest) -> KernelOutcome:
        arch = _gpu_of(self._module, request.card)
        hazards = request.hazards
        is_writeable = hazards is False or (
            hazards is not True and "read-only" not in hazards
        )
        profile = Profile()
        observers = (ThreadCounting(profile, arch),) if request.is_profiled else ()
        gpu = EmulatedNvidiaGpu(
            is_watched=request.is_watched,
            hazards=has_races(hazards),
            tools=kernel_tools(),
            observers=observers,
        )
        arguments = [_argument(one, is_writeable) for one in request.arguments]
        with self._named():
            report = gpu.run(
                gpu.load(self._text),
                request.kernel,
                request.grid,
                request.block,
                arguments,
                shared_bytes=request.shared_bytes,
                limits=request.limits,
            )
        code = Binary(self._text.encode(), "ptx")
        return KernelOutcome(
            steps=report.steps,
            findings=tuple(map(str, report.findings)),
            profiles=tuple(
                report_of(one, code, card=request.card) for one in profile.kernels
            ),
            not_compared=not_compared_in(self._instructions(request.kernel)),
            notes=_notes(report),
        )

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Let the errors of a block of code name the file, in front of the line."""
        try:
            yield
        except RefcompError as error:
            error.where = f"{self._file}, {error.where}" if error.where else self._file
            raise

    def _instructions(self, kernel: str) -> Iterator[PtxInstruction]:
        """Yield the instructions of a kernel and of all functions, without loads of parameters."""
        for function in self._module.functions.values():
            if function.name == kernel or not function.is_entry:
                for one in function.instructions:
                    if one.opcode != "ld" or "param" not in one.modifiers:
                        yield one


def _notes(report: PtxReport) -> tuple[str, ...]:
    if not report.unfreed:
        return ()
    pieces = counted(len(report.unfreed), "piece")
    size = counted(sum(report.unfreed), "byte")
    return (
        f"the kernel did not free {pieces} of memory that malloc returned ({size}); "
        "another kernel may",
    )


def _without_kernels(module: PtxModule, file: str) -> UserError:
    defined = [one.name for one in module.functions.values() if not one.is_declaration]
    functions = ", ".join(defined[:_MAX_NAMES]) or "no function"
    if len(defined) > _MAX_NAMES:
        functions += ", ..."
    return UserError(
        f"{file} has no kernel",
        why=f"a kernel begins with .entry, and the file defines {functions}",
        remedy="declare the function as __global__ in CUDA C, and instantiate it if it is a "
        "template; or give the file that was linked from all parts",
    )


def _gpu_of(module: PtxModule, card: str | None) -> str:
    """Return the GPU that the PTX runs on: that of a card, or the oldest that runs it.

    Raises UserError for an unknown card, and for one that does not run it.
    """
    needed = capability_of(module.target)
    oldest = f"sm_{needed[0]}{needed[1]}"
    if card is None:
        return oldest
    found = find_card(card)
    is_nvidia = found.mcpu.startswith("sm_")
    # PTX for sm_90a runs on no newer GPU.
    is_bound = not module.target[-1].isdigit()
    runs = is_nvidia and capability_of(found.mcpu) >= needed
    if not runs or (is_bound and found.mcpu != oldest):
        raise UserError(
            f"the PTX is for {module.target}, the card {found.name} has {found.mcpu}",
            remedy="name another card, or compile for that GPU",
        )
    return found.mcpu


def has_races(hazards: bool | tuple[str, ...]) -> bool:
    """Return True if races are looked for. UserError for a hazard that NVIDIA GPUs lack."""
    if isinstance(hazards, bool):
        return hazards
    if _NOT_ON_NVIDIA in hazards:
        known = ", ".join(name for name in HAZARDS if name != _NOT_ON_NVIDIA)
        raise UserError(
            f"--hazard {_NOT_ON_NVIDIA} is not a hazard of NVIDIA GPUs",
            why="PTX has no wait states: ptxas puts them into machine code",
            remedy=f"choose from {known}",
        )
    return "races" in hazards


def _argument(given: GivenArgument, is_writeable: bool) -> Argument:
    """Return an argument as the GPU takes it.

    If `is_writeable`, an array may be written that is only read back where `out:` says so.
    """
    value = given.value
    if isinstance(value, LocalMemory):
        raise UserError(
            f"--arg {given.name}: no argument of a PTX kernel is local memory",
            why="a launch gives all dynamic shared memory of a block as one piece",
            remedy=f"give --shared {value.size} instead",
        )
    if isinstance(value, np.ndarray) and is_writeable and given.path is None:
        return value.copy()  # which is writeable
    return value


def listing_of(module: PtxModule) -> KernelListing:
    """Return the kernels of a PTX file."""
    shared = sum(one.bytes for one in module.variables if one.space == "shared")
    kernels = {
        name: _listed(function, shared)
        for name, function in module.functions.items()
        if function.is_entry and not function.is_declaration
    }
    return KernelListing(module.target, "block", ARGUMENT_FORMS, kernels)


def _listed(kernel: PtxFunction, shared: int) -> ListedKernel:
    own = sum(one.bytes for one in kernel.variables if one.space == "shared")
    needed = kernel.limits.get("reqntid", ())
    most = kernel.limits.get("maxntid", (THREADS_LIMIT,))
    return ListedKernel(
        kernel.name,
        (*needed, 1, 1)[:3] if needed else (),
        prod(needed or most),
        shared + own,
        tuple(map(_listed_argument, kernel.parameters)),
    )


def _listed_argument(parameter: Variable) -> ListedArgument:
    is_array = parameter.is_pointer
    is_address = is_array or (parameter.type in ("u64", "b64") and parameter.bytes == 8)
    description = counted(parameter.bytes, "byte")
    if is_address:
        description = "array" if is_array else "array, or a number of 8 bytes"
    form = _form(parameter)
    if is_address:
        form = f"out:{plain_name(parameter.name)}.npy"
    return ListedArgument(
        name=parameter.name,
        kind="global_buffer" if is_array else "by_value",
        bytes=parameter.bytes,
        type=parameter.type,
        description=f"{description} ({parameter.type})",
        form=form,
    )


def _form(parameter: Variable) -> str:
    """Return an example of --arg for a number. A structure can be passed in Python only."""
    dtype = f"{_DTYPES.get(parameter.type[0], '')}{parameter.type[1:]}"
    is_number = dtype[1:].isdecimal() and int(dtype[1:]) == 8 * parameter.bytes
    if not is_number or parameter.bytes > _ADDRESS:
        return "(a structure: in Python, EmulatedNvidiaGpu.run takes a numpy.void)"
    return f"{plain_name(parameter.name)}:{dtype}=1"
