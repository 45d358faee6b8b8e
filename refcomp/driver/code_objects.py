"""Kernels of bare code objects, loaded as a module: refcomp's own, and those of other compilers."""

from __future__ import annotations

import os
from pathlib import Path

from refcomp import toolchain
from refcomp.driver.devices import device_for
from refcomp.foundation.amd_metadata import KernelMetadata
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.foundation.paths import checked_path
from refcomp.foundation.target import as_target
from refcomp.foundation.unlinked import refuse_unlinked
from refcomp.runtime.launch import KernelSignature
from refcomp.runtime.programs.bare_kernel import PackedArgument, PackedSignature
from refcomp.runtime.programs.device_module import DeviceModule
from refcomp.runtime.programs.program import DeviceCode

_ELF = b"\x7fELF"


def load_code_object(path: str | os.PathLike[str]) -> DeviceModule:
    """Load a bare code object, which `Module.save("x.hsaco")` and other compilers write.

    `module["kernel"](*args, grid=, block=)` launches a kernel of the result: arrays, numbers with
    numpy dtypes and `LocalMemory`, in the kernel's own order. The grid is counted in groups, and
    the block in threads. The source `get_source("metadata")` lists the kernels with their
    arguments, and `"asm"` is the assembly.

    Args:
        path: the file, an ELF file of a linked code object.

    Raises:
        UserError: the file cannot be read, or is not a code object.
        ToolchainError: the code object is damaged.

    Example::

        >>> import pathlib, tempfile
        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> module = rc.build(s, [A, B], target="rocm -mcpu=gfx942", name="increment")
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "increment.hsaco"
        >>> module.save(path)
        >>> kernels = rc.load_code_object(path)
        >>> print(module.get_source("launch"), end="")
        func increment(A: f32[64], B: f32[64] out) {
          launch increment_kernel0 (B, A) grid (1, 1, 1) block (64, 1, 1)
        }
        >>> gpu = rc.rocm_emulator("gfx942")
        >>> a, b = rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu)
        >>> kernels["increment_kernel0"](b, a, grid=1, block=64)
        >>> print(b.asnumpy()[:4])
        [2. 2. 2. 2.]
    """
    name = checked_path(path, "a code object")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UserError(
            f"{name} cannot be read", why=error.strerror, remedy="check the path"
        ) from error
    if not data.startswith(_ELF):
        raise UserError(
            f"{name} is not a code object",
            why=f"it begins with {data[:4]!r}, not as an ELF file"
            if data
            else "it is empty",
            remedy="give what module.save('x.hsaco') or another compiler for AMD GPUs wrote",
        )
    refuse_unlinked(data, os.fspath(path))
    metadata = toolchain.read_code_object(data)
    binary = Binary(data, "hsaco")
    target = as_target(f"rocm -mcpu={metadata.mcpu}")
    kernels = [KernelSignature(k.name, k.name, ()) for k in metadata.kernels]
    return DeviceModule(
        DeviceCode(binary, kernels, device_for(target)),
        target=str(target),
        sources={"metadata": toolchain.metadata_text(data)},
        disassemble=lambda: toolchain.disassemble(binary),
        bare=map(_packed_signature, metadata.kernels),
    )


def _packed_signature(kernel: KernelMetadata) -> PackedSignature:
    # The driver passes the hidden arguments, such as the size of the grid.
    given = (arg for arg in kernel.arguments if not arg.kind.startswith("hidden_"))
    return PackedSignature(
        name=kernel.name,
        arguments=tuple(
            PackedArgument(arg.offset, arg.size, arg.kind, arg.alignment)
            for arg in given
        ),
        block=kernel.block,
        max_threads=kernel.max_threads,
        shared_bytes=kernel.shared_bytes,
    )
