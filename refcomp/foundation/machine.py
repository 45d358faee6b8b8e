"""Facts about the processor under this process: its name, its kind, its instruction sets.

Read from /proc/cpuinfo where there is one; elsewhere no feature is known, and none is refused.
"""

import platform
import re
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# Of x86's flags only those that a compiler emits instructions for: the others tell of the kernel
# and the hypervisor, and differ between machines that run the same code.
_X86_INSTRUCTION_SETS = re.compile(
    r"3dnow\w*|abm|adx|aes|amx_\w+|avx\w*|bmi[12]|clflushopt|clwb|clzero|cldemote|cx16|cx8|cmov"
    r"|f16c|fma4?|fxsr|gfni|lahf_lm|lwp|mmx\w*|movbe|movdir\w+|pclmulqdq|pni|popcnt|prefetchw\w*"
    r"|ptwrite|rdpid|rdrand|rdseed|serialize|sha\w*|sm[34]|ssse3|sse\w*|tbm|vaes|vpclmulqdq"
    r"|waitpkg|xop|xsave\w*"
)
_X86 = ("x86_64", "i686", "AMD64")


def machine() -> str:
    """The kind of processor that machine code must be for: `x86_64`, `aarch64`."""
    return platform.machine()


@cache
def cpu_name() -> str:
    """The processor's own name, or its kind where it does not tell one."""
    return _cpuinfo_field("model name") or machine()


@cache
def cpu_features() -> frozenset[str]:
    """The instruction sets of this processor, named as in /proc/cpuinfo; empty when unknown."""
    names = (_cpuinfo_field("flags") or _cpuinfo_field("Features")).split()
    if machine() not in _X86:
        return frozenset(names)
    return frozenset(name for name in names if _X86_INSTRUCTION_SETS.fullmatch(name))


def _cpuinfo_field(name: str) -> str:
    """The value in the block of the first processor, '' when there is none."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(rf"^{re.escape(name)}\s*:[ \t]*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""
