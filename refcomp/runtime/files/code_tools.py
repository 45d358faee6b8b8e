"""The tools that make code for hosts of LLVM IR when a module is saved.

The runtime starts no compiler. `refcomp.driver.text_forms` registers the tools as soon as a program
builds a module.
"""

from collections.abc import Callable

# LLVM IR, the target of its module, and a suffix such as `.o` -> the bytes of the file.
MakeCode = Callable[[str, str, str], bytes]

# Data and a description -> a shared object for this host that holds both. C programs find the data
# by the symbols `refcomp_device_code` and `refcomp_device_code_size`. No description is b"".
HoldData = Callable[[bytes, bytes], bytes]

# LLVM IR and a description of its functions -> LLVM IR whose object holds the description.
Describe = Callable[[str, bytes], str]

_TOOLS: list[MakeCode] = []
_DESCRIBERS: list[Describe] = []
_HOLDERS: list[HoldData] = []


def register_code_tools(make: MakeCode) -> None:
    """Let saved modules use `make`, which replaces the tools that were registered before."""
    _TOOLS[:] = [make]


def code_tools() -> MakeCode | None:
    """Return the registered tools; None if this program has built no module."""
    return _TOOLS[0] if _TOOLS else None


def register_data_holder(hold: HoldData) -> None:
    """Let saved modules use `hold` for the code of devices."""
    _HOLDERS[:] = [hold]


def data_holder() -> HoldData | None:
    """Return the registered tool; None if this program has built no module."""
    return _HOLDERS[0] if _HOLDERS else None


def register_describer(describe: Describe) -> None:
    """Let saved objects hold the descriptions of their functions by `describe`."""
    _DESCRIBERS[:] = [describe]


def describer() -> Describe | None:
    """Return the registered tool; None if this program has built no module."""
    return _DESCRIBERS[0] if _DESCRIBERS else None
