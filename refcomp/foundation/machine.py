"""Facts about this machine's processor: its name, its kind, its instruction sets.

They come from /proc/cpuinfo. Without this file, no instruction set is known, and none is refused.
"""

import platform
import re
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# Those flags of x86 that a compiler emits instructions for. The other flags depend on the kernel
# and the hypervisor, and differ between machines that run the same code.
_X86_INSTRUCTION_SETS = re.compile(
    r"3dnow\w*|abm|adx|aes|amx_\w+|avx\w*|bmi[12]|clflushopt|clwb|clzero|cldemote|cx16|cx8|cmov"
    r"|f16c|fma4?|fxsr|gfni|lahf_lm|lwp|mmx\w*|movbe|movdir\w+|pclmulqdq|pni|popcnt|prefetchw\w*"
    r"|ptwrite|rdpid|rdrand|rdseed|serialize|sha\w*|sm[34]|ssse3|sse\w*|tbm|vaes|vpclmulqdq"
    r"|waitpkg|xop|xsave\w*"
)
_X86 = ("x86_64", "i686", "AMD64")


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
    names = (_cpuinfo_field("flags") or _cpuinfo_field("Features")).split()
    if machine() not in _X86:
        return frozenset(names)
    return frozenset(name for name in names if _X86_INSTRUCTION_SETS.fullmatch(name))


def _cpuinfo_field(name: str) -> str:
    """Return the value in the block of the first processor, '' if it is missing."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(rf"^{re.escape(name)}\s*:[ \t]*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""
