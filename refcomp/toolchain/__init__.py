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
- parts.py: several texts compiled at the same time, and joined.
- preference.py: the same for several toolchains of one language.
- nvrtc_program.py: a program around NVIDIA's compiler in a library, run as a tool.
- disassembly.py: from machine code back to text.
- code_object.py: checks of machine code for AMD GPUs.
- occupancy.py: the number of waves that an AMD GPU holds at a time.
- multiprocessor.py: the number of blocks that an NVIDIA GPU holds at a time.
- ptxas_report.py: the registers and memory of kernels for NVIDIA GPUs.
- diagnose.py: the report of `refcomp doctor`.
"""

from refcomp.toolchain.code_object import (
    check_code_object,
    found_code_object_version,
    metadata_text,
    read_code_object,
)
from refcomp.toolchain.compile import (
    ReportedBinary,
    compile_source,
    compile_with_report,
)
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
    known_values,
    llvm_options,
    target_facts,
    vector_bits,
)
from refcomp.toolchain.layout import device_layout, llvm_major
from refcomp.toolchain.multiprocessor import (
    BlockOccupancy,
    block_occupancy,
    max_shared_bytes,
)
from refcomp.toolchain.occupancy import Occupancy, occupancy_of
from refcomp.toolchain.preference import compile_by_first, first_usable
from refcomp.toolchain.ptxas_report import PtxasRecord, read_ptxas_report

__all__ = [
    "compile_source",
    "compile_with_report",
    "compile_by_first",
    "first_usable",
    "ReportedBinary",
    "disassemble",
    "without_padding",
    "device_layout",
    "llvm_major",
    "read_code_object",
    "metadata_text",
    "BlockOccupancy",
    "block_occupancy",
    "PtxasRecord",
    "read_ptxas_report",
    "Occupancy",
    "max_shared_bytes",
    "occupancy_of",
    "check_code_object",
    "check_option",
    "known_values",
    "found_code_object_version",
    "host_triple_and_layout",
    "vector_bits",
    "host_facts",
    "llvm_options",
    "target_facts",
    "find_tools",
    "FoundTools",
    "load_description",
    "read_description",
    "Description",
    "toolchain_names",
    "diagnose",
    "ToolReport",
]
