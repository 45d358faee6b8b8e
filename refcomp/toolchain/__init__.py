"""Source -> Binary by subprocesses that toolchains/*.toml describe. Independent of the IR.

Reading order:

- description.py: the contents of a toolchain file.
- places.py and versions.py: the tools on this machine.
- find.py: the choice among them.
- run.py and steps.py: running tools.
- keep.py: folders that keep runs for later.
- remember.py: the cache.
- host.py and layout.py: facts about processors and GPUs.
- compile.py: the door of this room.
- disassembly.py: from machine code back to text.
- code_object.py: checks of machine code for AMD GPUs.
- occupancy.py: the number of waves that a GPU holds at a time.
- diagnose.py: the report of `refcomp doctor`.
"""

from refcomp.toolchain.code_object import (
    check_code_object,
    found_code_object_version,
    metadata_text,
    read_code_object,
)
from refcomp.toolchain.compile import compile_source
from refcomp.toolchain.description import (
    Description,
    load_description,
    read_description,
    toolchain_names,
)
from refcomp.toolchain.diagnose import ToolReport, diagnose
from refcomp.toolchain.disassembly import disassemble, without_padding
from refcomp.toolchain.find import FoundTools, find_tools
from refcomp.toolchain.host import (
    check_option,
    host_facts,
    host_triple_and_layout,
    vector_bits,
)
from refcomp.toolchain.layout import device_layout, llvm_major
from refcomp.toolchain.occupancy import Occupancy, occupancy_of

__all__ = [
    "compile_source",
    "disassemble",
    "without_padding",
    "device_layout",
    "llvm_major",
    "read_code_object",
    "metadata_text",
    "Occupancy",
    "occupancy_of",
    "check_code_object",
    "check_option",
    "found_code_object_version",
    "host_triple_and_layout",
    "vector_bits",
    "host_facts",
    "find_tools",
    "FoundTools",
    "load_description",
    "read_description",
    "Description",
    "toolchain_names",
    "diagnose",
    "ToolReport",
]
