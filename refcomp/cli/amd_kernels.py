"""Code objects for AMD GPUs, as `refcomp emulate` lists and runs their kernels."""

from __future__ import annotations

from refcomp import toolchain
from refcomp.cli.kernel_arguments import FORMS_WITH_LOCAL
from refcomp.cli.kernel_file import KernelOutcome, KernelRequest
from refcomp.cli.kernel_listing import (
    KernelListing,
    ListedArgument,
    ListedKernel,
    plain_name,
)
from refcomp.driver.host_tools import host_tools
from refcomp.emulator import EmulatedGpu
from refcomp.emulator.code.code_object import CodeObject, KernelEntry, read_code_object
from refcomp.emulator.ledger import not_compared
from refcomp.emulator.observers.counting import Profile, WaveCounting
from refcomp.emulator.run import explicit_arguments
from refcomp.foundation.amd_metadata import KernelArgument
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.local_memory import LOCAL_POINTER
from refcomp.foundation.unlinked import refuse_unlinked
from refcomp.profile.cards import card_for
from refcomp.profile.report import report_of

_BUFFER = "global_buffer"
_DTYPE_OF_C_TYPE = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "char": "i8",
    "uchar": "u8",
    "short": "i16",
    "ushort": "u16",
    "int": "i32",
    "uint": "u32",
    "long": "i64",
    "ulong": "u64",
}
_DTYPE_OF_SIZE = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}  # bytes -> dtype


class AmdKernels:
    """The kernels of a code object.

    Args:
        data: the code object.
        file: its name, for messages.

    Raises:
        UserError: it is not a code object that can be loaded.
    """

    def __init__(self, data: bytes, file: str) -> None:
        refuse_unlinked(data, file)  # an object file needs a linker first
        self._data = data
        self._file = file
        try:
            self._code = read_code_object(data)
        except RefcompError as error:
            error.where = error.where or file
            raise
        self.listing = listing_of(self._code)

    def find(self, name: str) -> ListedKernel:
        self._code.kernel(name)  # raises
        return self.listing.kernels[name]

    def run(self, request: KernelRequest) -> KernelOutcome:
        profile = Profile()
        gpu = EmulatedGpu(
            _disassemble,
            is_watched=request.is_watched,
            hazards=request.hazards,
            observers=(WaveCounting(profile),) if request.is_profiled else (),
            tools=host_tools(),
        )
        try:
            loaded = gpu.load(self._data)
        except RefcompError as error:
            error.where = error.where or self._file
            raise
        card_for(loaded.generation.name, request.card)  # raises before anything runs
        report = gpu.run(
            loaded,
            request.kernel,
            request.grid,
            request.block,
            [one.value for one in request.arguments],
            shared_bytes=request.shared_bytes,
            limits=request.limits,
        )
        binary = Binary(self._data, "hsaco")
        return KernelOutcome(
            steps=report.steps,
            findings=tuple(map(str, report.findings)),
            profiles=tuple(
                report_of(one, binary, card=request.card) for one in profile.kernels
            ),
            not_compared=not_compared(loaded.executed, loaded.generation),
        )


def _disassemble(code: bytes) -> str:
    return toolchain.disassemble(Binary(code, "hsaco"))


def listing_of(code: CodeObject) -> KernelListing:
    """Return the kernels of a code object."""
    kernels = {name: _listed(kernel) for name, kernel in code.kernels.items()}
    return KernelListing(code.mcpu, "group", FORMS_WITH_LOCAL, kernels)


def _listed(kernel: KernelEntry) -> ListedKernel:
    return ListedKernel(
        kernel.name,
        kernel.block,
        kernel.max_threads,
        kernel.descriptor.shared_bytes,
        tuple(map(_listed_argument, explicit_arguments(kernel))),
    )


def _listed_argument(argument: KernelArgument) -> ListedArgument:
    return ListedArgument(
        name=argument.name,
        kind=argument.kind,
        bytes=argument.size,
        type=argument.type_name,
        description=_describe(argument),
        form=_form(argument),
        is_read_only=argument.is_read_only,
    )


def _describe(argument: KernelArgument) -> str:
    text = counted(argument.size, "byte")
    if argument.kind == _BUFFER:
        text = "array, only read" if argument.is_read_only else "array"
    elif argument.kind == LOCAL_POINTER:
        text = "local memory"
    return f"{text} ({argument.type_name})" if argument.type_name else text


def _form(argument: KernelArgument) -> str:
    """Return an example of --arg. A structure can be passed in Python only."""
    name = plain_name(argument.name)
    if argument.kind == LOCAL_POINTER:
        return "local:256"
    if argument.kind == _BUFFER:
        return f"{name}.npy" if argument.is_read_only else f"out:{name}.npy"
    dtype = _DTYPE_OF_C_TYPE.get(argument.type_name)
    dtype = dtype or _DTYPE_OF_SIZE.get(argument.size)
    if dtype is None:
        return "(a structure: in Python, refcomp.load_code_object passes one of ctypes)"
    return f"{name}:{dtype}=1"
