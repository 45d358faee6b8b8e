"""From machine code to text by llvm-objdump, nvdisasm or cuobjdump, through the cache.

Ensures: the same code and tools give the same text. Once it is in the cache, packed, no tool is
started. If $REFCOMP_KEEP names a folder, the tool always runs.
Refuses: UserError for an unknown format; ToolchainError if the tool is missing or fails.
"""

import hashlib
import json
import re
import zlib

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.cache import Cache, default_cache
from refcomp.foundation.dump import is_keeping
from refcomp.foundation.errors import UserError
from refcomp.foundation.private_folder import private_folder
from refcomp.toolchain.description import (
    HOLE,
    BuildStep,
    Description,
    load_description,
)
from refcomp.toolchain.find import find_tool
from refcomp.toolchain.remember import recall
from refcomp.toolchain.steps import fill_arguments, run_checked, write_input

# Format -> the toolchain that has the tool, and its step.
_DISASSEMBLED_BY = {
    "so": ("llvm", "disassemble"),
    "o": ("llvm", "disassemble"),
    "hsaco": ("rocm", "disassemble"),
    "cubin": ("sass", "disassemble_cubin"),
    "fatbin": ("sass", "disassemble_fatbin"),
}

_INSTRUCTION = re.compile(r"\t(\S+) .*// [0-9A-F]+: ")
_PADDING = re.compile(r"\t(?:s_code_end|s_nop|v_illegal|\.long)\b|\t+\.{3}$")
_COMMENT = re.compile(r";")
# What no wave runs beyond, unless it jumps there.
_ENDS = re.compile(r"s_endpgm|s_branch|s_setpc_b64|s_trap")


def disassemble(binary: Binary, *, cache: Cache | None = None) -> str:
    """Return the assembly text of `binary`. Text formats are returned unchanged.

    `cache` defaults to the user's.
    """
    if binary.format in ("s", "ll", "ptx"):
        return binary.data.decode()
    if binary.format not in _DISASSEMBLED_BY:
        raise UserError(f"a binary of format {binary.format!r} cannot be disassembled")
    name, key = _DISASSEMBLED_BY[binary.format]
    chain = load_description(name)
    step = chain.steps[key]
    if is_keeping():
        return zlib.decompress(_disassembled(chain, step, binary)).decode()
    steps = json.dumps(step.arguments)
    parts = (
        "disassemble",
        hashlib.sha256(binary.data).hexdigest(),
        binary.format,
        steps,
    )
    store = default_cache() if cache is None else cache
    packed = recall(store, chain, parts, lambda _: _disassembled(chain, step, binary))
    return zlib.decompress(packed).decode()


def _disassembled(chain: Description, step: BuildStep, binary: Binary) -> bytes:
    """Return the output of the disassembler, packed."""
    with private_folder() as folder:
        path = write_input(folder / f"binary.{binary.format}", binary.data)
        # The name alone, since llvm-objdump prints it: the text must not depend on the folder.
        (tool,) = HOLE.findall(step.arguments[0])
        holes = {tool: find_tool(chain, tool), "input": path.name}
        command = fill_arguments(step.arguments, holes)
        text = run_checked(chain, command, folder).stdout.decode(errors="replace")
    return zlib.compress(text.encode(), level=1)


def without_padding(text: str) -> str:
    """Return llvm-objdump's text for an AMD GPU without the padding after each function.

    Assemblers align functions, and GPUs prefetch: after the last instruction of a function stand
    s_code_end, s_nop or zeros that no wave executes.
    """
    kept: list[str] = []
    # Padding, unless another instruction of the function follows.
    pending: list[str] = []
    is_ended = False
    for line in text.splitlines(keepends=True):
        if is_ended and (_PADDING.match(line) or (pending and _COMMENT.match(line))):
            pending.append(line)
            continue
        if match := _INSTRUCTION.match(line):
            kept += pending
            is_ended = bool(_ENDS.match(match[1]))
        pending = []
        kept.append(line)
    return "".join(kept)
