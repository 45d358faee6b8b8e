"""Loading a file that `Module.save` wrote. Everything that can be checked is checked first.

Refuses with UserError a file that is missing, foreign, truncated, changed or too large. Refuses
also a file of another version of refcomp, for another machine, or for a processor with more
instruction sets. Refuses with ToolchainError a file that needs a missing library, or whose kernels
the device refuses. Before these checks, nothing in the file is executed.

A file for a device that this machine does not have can be loaded: its texts can be read, and a call
says what is missing.
"""

import os
from collections.abc import Callable
from functools import partial

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.elf import needed_libraries
from refcomp.foundation.paths import checked_path
from refcomp.runtime.device import device
from refcomp.runtime.files.archive import read_archive
from refcomp.runtime.files.damage import damaged
from refcomp.runtime.files.manifest import checked_manifest, unpack
from refcomp.runtime.files.program_manifest import read_hosts, unpack_program
from refcomp.runtime.host.machine_code import require_library
from refcomp.runtime.module import Module


def load_module(
    path: str | os.PathLike[str], *, disassemble: Callable[[Binary], str] | None = None
) -> Module:
    """Load a module file or a shared object `.so`, which `Module.save` wrote.

    The file contains machine code, so load only files that you trust: a foreign shared object may
    run code as soon as it is loaded. The code that refcomp makes runs only in calls. A file for a
    device that this machine does not have can be loaded and read.

    Args:
        path: the file.
        disassemble: makes the module's source `asm` when it is requested; None for no such source.

    Raises:
        UserError: the file is missing, foreign, truncated, changed or too large; or it is for
            another version of refcomp, another machine or a processor with more instruction sets.
        ToolchainError: a library that the code needs is missing, or the device refuses the kernels.

    Source: TVM, tvm.runtime.load_module.

    Example::

        >>> import pathlib, tempfile
        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "increment.module"
        >>> rc.build(rc.create_schedule(B), [A, B], name="increment").save(path)
        >>> increment = rc.load_module(path)
        >>> b = np.empty(4, "float32")
        >>> increment(np.arange(4, dtype="float32"), b)
        >>> print(b)
        [1. 2. 3. 4.]
    """
    name = checked_path(path, "a module file")
    members = read_archive(name)
    manifest = checked_manifest(name, members)
    if "device" in manifest:
        program = unpack_program(name, manifest, members)
        code = program.code
        make_asm = None
        # OpenCL devices take texts, which have no disassembly.
        if disassemble is not None and isinstance(code, Binary):
            make_asm = partial(disassemble, code)
        hosts = read_hosts(name, program)
        home = device(program.device)
        return Module.from_program_contents(program, hosts, home, make_asm)
    contents = unpack(name, members)
    if contents.libraries != needed_libraries(contents.binary.data):
        raise damaged(name, "its manifest and its code need different libraries")
    for library in contents.libraries:
        require_library(library)
    if disassemble is None:
        return Module.from_contents(contents)
    return Module.from_contents(contents, partial(disassemble, contents.binary))
