"""Lists the kernels of a file, and a command that runs one: `refcomp emulate FILE`.

What the file says of its kernels is enough; no tool is run. Names in it may be a stranger's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refcomp.cli.outcomes import printable
from refcomp.foundation.counted import counted

_USUAL_THREADS = 64  # of a group; a wave on most AMD GPUs, two warps


@dataclass(frozen=True, slots=True)
class ListedArgument:
    """An argument of a kernel."""

    name: str
    kind: str  # `global_buffer`, `by_value` or another kind of AMD's metadata
    bytes: int
    type: str  # as the file names it; "" if it does not
    description: str
    form: str  # an example of --arg
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class ListedKernel:
    """A kernel of a file."""

    name: str
    block: tuple[
        int, ...
    ]  # threads of a group, which a launch must have; () if it may choose
    max_threads: int  # of a group
    shared_bytes: int  # of a group
    arguments: tuple[ListedArgument, ...]


@dataclass(frozen=True, slots=True)
class KernelListing:
    """The kernels of a file, which has at least one."""

    gpu: str  # that the file is for
    group: str  # what this GPU calls a group of threads: group or block
    argument_forms: str  # what --arg takes, as text
    kernels: Mapping[str, ListedKernel]  # by name


def listing_to_text(
    listing: KernelListing, chosen: Sequence[ListedKernel], file: str
) -> str:
    """Return some kernels with their arguments, and a command that runs the first of them."""
    lines = [f"kernels of {file}, for {listing.gpu}:"]
    for kernel in chosen:
        group = f"{listing.group}s of at most {counted(kernel.max_threads, 'thread')}"
        if kernel.block:
            group = f"{listing.group}s of {' x '.join(map(str, kernel.block))} threads"
        if kernel.shared_bytes:
            group += f", {counted(kernel.shared_bytes, 'byte')} of shared memory"
        lines.append(f"  {kernel.name}: {group}")
        lines += [f"    {line}" for line in _arguments(kernel)]
    lines.append(f"arguments, in this order, each by --arg: {listing.argument_forms}")
    lines += ["example:", f"  {_example(listing, chosen[0], file)}"]
    return printable("\n".join(lines) + "\n")


def listing_to_json(
    listing: KernelListing, chosen: Sequence[ListedKernel]
) -> dict[str, object]:
    """Return the same list for programs."""
    return {
        "gpu": listing.gpu,
        "kernels": [_kernel_to_json(kernel) for kernel in chosen],
    }


def _kernel_to_json(kernel: ListedKernel) -> dict[str, object]:
    return {
        "kernel": kernel.name,
        "block": list(kernel.block),
        "max_threads": kernel.max_threads,
        "shared_bytes": kernel.shared_bytes,
        "arguments": [
            {
                "name": argument.name,
                "kind": argument.kind,
                "bytes": argument.bytes,
                "is_read_only": argument.is_read_only,
                "type": argument.type,
            }
            for argument in kernel.arguments
        ],
    }


def _arguments(kernel: ListedKernel) -> list[str]:
    """Return a line for each argument: name, description, and a form of --arg, in columns."""
    arguments = kernel.arguments
    if not arguments:
        return ["no arguments"]
    name_width = max(len(argument.name) for argument in arguments)
    width = max(len(argument.description) for argument in arguments)
    return [
        f"{one.name:{name_width}}  {one.description:{width}}  {one.form}"
        for one in arguments
    ]


def plain_name(name: str) -> str:
    """Return the name of an argument without marks, for the name of a file."""
    return re.sub(r"\W", "", name) or "x"


def _example(listing: KernelListing, kernel: ListedKernel, file: str) -> str:
    block = kernel.block or (min(_USUAL_THREADS, kernel.max_threads), 1, 1)
    # Trailing extents of 1 may be left out.
    extents = ",".join(map(str, block)).removesuffix(",1").removesuffix(",1")
    words = ["refcomp", "emulate", file]
    if len(listing.kernels) > 1:
        words += ["--kernel", kernel.name]
    words += ["--grid", "1", "--block", extents]
    for argument in kernel.arguments:
        words += ["--arg", argument.form]
    return shlex.join(words)
