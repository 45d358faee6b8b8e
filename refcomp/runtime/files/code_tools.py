"""The tools that make code for hosts of LLVM IR when a module is saved.

The runtime starts no compiler. `refcomp.driver.text_forms` registers the tools as soon as a program
builds a module.
"""

from collections.abc import Callable

# LLVM IR, the target of its module, and a suffix such as `.o` -> the bytes of the file.
MakeCode = Callable[[str, str, str], bytes]

_TOOLS: list[MakeCode] = []


def register_code_tools(make: MakeCode) -> None:
    """Let saved modules use `make`, which replaces the tools that were registered before."""
    _TOOLS[:] = [make]


def code_tools() -> MakeCode | None:
    """Return the registered tools; None if this program has built no module."""
    return _TOOLS[0] if _TOOLS else None
