#!/usr/bin/env python3
"""Writes refcomp/hip/numbers.py: the HIP runtime's numbers, by version, read off what AMD ships.

    scripts/hip_numbers.py SOURCE...     prints the table; a SOURCE is, oldest first,
        the include folder that holds hip/hip_runtime_api.h (read by clang), or
        the folder of an unpacked wheel of hip-python, which AMD makes of the headers

Where the table that is there came from: Debian's libamdhip64-dev 5.2.3 (/usr/include), and the
wheels hip-python 6.2.0.499.16 and 7.2.2.562.43 (pip download --no-deps; unzip).
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER = "hip/hip_runtime_api.h"
CLANGS = ("clang", *(f"clang-{major}" for major in range(40, 14, -1)))
# What else is used: all errors are, as words in messages.
ATTRIBUTES = """MaxBlockDimX MaxBlockDimY MaxBlockDimZ MaxGridDimX MaxGridDimY MaxGridDimZ
    MaxThreadsPerBlock MaxThreadsPerMultiProcessor MaxSharedMemoryPerBlock
    MaxSharedMemoryPerMultiprocessor MaxRegistersPerBlock WarpSize MultiprocessorCount ClockRate
    MemoryClockRate MemoryBusWidth L2CacheSize PciBusId PciDeviceId PciDomainID"""
COPIES = "HostToHost HostToDevice DeviceToHost DeviceToDevice Default"
USED = [f"hipDeviceAttribute{name}" for name in ATTRIBUTES.split()]
USED += [f"hipMemcpy{name}" for name in COPIES.split()]
ARCH_OFFSET = "hipDeviceProp_t.gcnArchName"
ERROR = re.compile(r"\b(hip(?:Success|Error(?!_t)[A-Z]\w+))\s*=\s*\d+")
# The name's place is where a byte that is written shows in the name.
PROBE = """import sys; sys.path.insert(0, sys.argv[1]); from hip import hip; import ctypes
for kind in (hip.hipError_t, hip.hipDeviceAttribute_t, hip.hipMemcpyKind):
    for name, value in kind.__members__.items(): print(name, int(value))
answer = hip.hipDeviceProp_t(); size = answer.c_sizeof()
raw = (ctypes.c_char * size).from_address(answer.as_c_void_p().value)
def shows(place):
    raw[place] = b"x"; shown = answer.gcnArchName[:1] == b"x"; raw[place] = b"\\0"; return shown
print("hipDeviceProp_t.gcnArchName", next(place for place in range(size) if shows(place)))
print("version", hip.HIP_VERSION)"""


def read_header(folder: Path) -> dict[str, int]:
    """Return all numbers of the header in `folder`, as clang understands it."""
    text = "".join(p.read_text(errors="replace") for p in (folder / "hip").glob("*.h"))
    names = [
        *dict.fromkeys(ERROR.findall(text)),
        *(n for n in USED if re.search(rf"\b{n}\b", text)),
    ]
    lines = [f"int value_of_{name} = {name};" for name in names]
    lines += ["int value_of_offset = __builtin_offsetof(hipDeviceProp_t, gcnArchName);"]
    lines += ["int value_of_version = HIP_VERSION;"]
    with tempfile.TemporaryDirectory() as private:
        source = Path(private, "numbers.cpp")
        source.write_text("\n".join([f"#include <{HEADER}>", *lines]))
        command = [next(filter(None, map(shutil.which, CLANGS))), "-S", "-emit-llvm", "-o", "-"]
        command += ["-D__HIP_PLATFORM_AMD__", "-w", f"-isystem{folder}", str(source)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"@value_of_(\w+) = .*global i32 (\d+)", printed)
    numbers = {name: int(value) for name, value in found}
    return numbers | {ARCH_OFFSET: numbers.pop("offset")}


def read_wheel(folder: Path) -> dict[str, int]:
    """Return all numbers of hip-python, unpacked in `folder`. It must be for this Python's ABI."""
    command = [sys.executable, "-c", PROBE, str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    numbers = {name: int(value) for name, value in map(str.split, printed.splitlines())}
    others = {*USED, ARCH_OFFSET, "version", "hipSuccess"}
    return {n: v for n, v in numbers.items() if n in others or n.startswith("hipError")}


def read(source: Path) -> dict[str, int]:
    return read_header(source) if (source / HEADER).exists() else read_wheel(source)


def table(columns: list[dict[str, int]]) -> str:
    """Return the text of the module, with a column for each version."""
    versions = [column.pop("version") for column in columns]
    names = sorted({name for column in columns for name in column})
    rows = [f'    "{name}": ({", ".join(str(c.get(name)) for c in columns)}),' for name in names]
    return "\n".join(
        [
            '"""Constants of AMD\'s HIP runtime by version; made by scripts/hip_numbers.py."""\n',
            "# HIP's own version numbers: major * 10,000,000 + minor * 100,000 + patch.",
            f"VERSIONS = ({', '.join(f'{version:_}' for version in versions)})",
            "",
            "# Name -> its value in each of VERSIONS; None if the version lacks the name.",
            "NUMBERS: dict[str, tuple[int | None, ...]] = {",
            *rows,
            "}",
            "",
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(table([read(Path(argument)) for argument in sys.argv[1:]]), end="")
