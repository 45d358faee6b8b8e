"""Facts about this machine's processor: its name, its kind, its instruction sets, its identity.

They come from /proc/cpuinfo. Without this file, no instruction set is known, and none is refused.
"""

import os
import platform
import re
from functools import cache
from pathlib import Path

from refcomp.foundation.hashing import sha256

_CPUINFO = Path("/proc/cpuinfo")
# Those flags of x86 that a compiler emits instructions for. The other flags depend on the kernel
# and the hypervisor, and differ between machines that run the same code.
_X86_INSTRUCTION_SETS = (
    r"3dnow\w*|abm|adx|aes|amx_\w+|avx\w*|bmi[12]|clflushopt|clwb|clzero|cldemote|cx16|cx8|cmov"
    r"|f16c|fma4?|fxsr|gfni|lahf_lm|lwp|mmx\w*|movbe|movdir\w+|pclmulqdq|pni|popcnt|prefetchw\w*"
    r"|ptwrite|rdpid|rdrand|rdseed|serialize|sha\w*|sm[34]|ssse3|sse\w*|tbm|vaes|vpclmulqdq"
    r"|waitpkg|xop|xsave\w*"
)
_X86 = ("x86_64", "i686", "AMD64")
# Fields that the choice of instructions depends on, x86 and Arm.
_IDENTIFYING = frozenset(
    {
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "flags",
        "CPU implementer",
        "CPU architecture",
        "CPU variant",
        "CPU part",
        "CPU revision",
        "Features",
    }
)
# Bytes of the block of one processor, and more.
_BLOCK_BYTES = 16_384


def machine() -> str:
    """Return the kind of processor that runs machine code here: `x86_64`, `aarch64`."""
    return platform.machine()


@cache
def cpu_name() -> str:
    """Return the name of the processor's model, or its kind if the name is not known."""
    return _cpuinfo_field("model name") or machine()


@cache
def cpu_features() -> frozenset[str]:
    """Return the instruction sets, named as in /proc/cpuinfo; none if not known."""
    if machine() not in _X86:
        return cpu_flags()
    return frozenset(
        name for name in cpu_flags() if re.fullmatch(_X86_INSTRUCTION_SETS, name)
    )


@cache
def cpu_flags() -> frozenset[str]:
    """Return the instruction sets and all other flags of x86; none if not known."""
    return frozenset((_cpuinfo_field("flags") or _cpuinfo_field("Features")).split())


@cache
def cpu_identity() -> str:
    """Return a text that differs between processors or virtual machines with other instructions."""
    block = _first_block()
    if not block:
        return f"{platform.machine()} {platform.processor()}"
    lines = block.splitlines()
    fields = [line for line in lines if line.split("\t")[0] in _IDENTIFYING]
    digest = sha256("\n".join(fields).encode()).hexdigest()
    return f"{os.uname().machine} {digest}"


@cache
def _first_block() -> str:
    """Return the description of the first processor, '' if there is none."""
    try:
        # Without a buffer, as the kernel writes the blocks of all processors while it is read.
        with open(_CPUINFO, "rb", buffering=0) as file:
            text = file.read(_BLOCK_BYTES).decode(errors="replace")
    except OSError:
        return ""
    return text.partition("\n\n")[0]


def _cpuinfo_field(name: str) -> str:
    """Return the value in the block of the first processor, '' if it is missing."""
    for line in _first_block().splitlines():
        title, _, value = line.partition(":")
        if title.rstrip() == name:
            return value.strip()
    return ""
