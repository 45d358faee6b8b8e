"""Modules: compiled functions with their source texts, which can be saved in a file.

Ensures: each function checks its arguments in every call. `save` writes a file that `load_module`
accepts on every machine that can run the code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from refcomp.foundation import machine
from refcomp.foundation.artifacts import Binary, Signature, Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.paths import checked_path
from refcomp.foundation.target import option_in
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.printer import print_funcs
from refcomp.runtime.files.manifest import (
    JoinedContents,
    LinkedContents,
    ModuleContents,
    ObjectContents,
)
from refcomp.runtime.function import ArrayCallable, Function, PythonFunction
from refcomp.runtime.host.machine_code import HostFunction, load_shared_object
from refcomp.runtime.sources import Disassemble, Sources

# What a module of this host needs for calls is imported above. Programs for devices, files and
# measurements are imported by the methods that use them.
if TYPE_CHECKING:
    from refcomp.runtime.device import Device
    from refcomp.runtime.files.program_manifest import ProgramContents
    from refcomp.runtime.files.suffixes import Contents
    from refcomp.runtime.programs.device_module import DeviceModule
    from refcomp.runtime.timing import TimeResult, WorkResult


class Module:
    """Compiled functions of one target.

    `module(*args)` calls the entry function, and `module["name"]` is any function. `build`,
    `load_module` and the class methods below make modules.

    Args:
        functions: at least one, with unique names.
        target: the target as text.
        sources: language (`loop_ir`, `llvm`) -> text.
        entry: the name of the entry function; None for the first one.
        disassemble: makes the source `asm` when it is requested; None for no such source.
        imported_modules: the module of the kernels if the target is a device; else empty.
        contents: what a module file holds; None if the module cannot be saved.

    Raises:
        UserError: there is no function, two have the same name, or the entry is missing.

    Source: TVM, tvm.runtime.Module.

    Example::

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> module = rc.build(s, [A, B], name="increment")
        >>> folder = TemporaryDirectory()
        >>> path = str(Path(folder.name, "increment.module"))
        >>> module.save(path)
        >>> module, module.entry.name, list(module.signatures)
        (<refcomp module for llvm: increment>, 'increment', ['increment'])
        >>> module.contents.binary.format, list(module.contents.sources)
        ('so', ['loop_ir', 'llvm'])
        >>> module.languages
        ('loop_ir', 'llvm')
        >>> print(module.get_source("loop_ir"))
        func increment(A: f32[4], B: f32[4] out) {
        ...
        >>> module.export_library(Path(folder.name, "increment.so"))
        >>> a, b = np.ones(4, "float32"), np.zeros(4, "float32")
        >>> module(a, b)
        >>> print(b)
        [2. 2. 2. 2.]
        >>> measure = module.time_evaluator("increment", rc.cpu(), number=1, repeat=2)
        >>> len(measure(a, b).results)
        2
    """

    def __init__(
        self,
        functions: Iterable[Function],
        *,
        target: str,
        sources: Mapping[str, str],
        entry: str | None = None,
        disassemble: Disassemble | None = None,
        imported_modules: tuple[DeviceModule, ...] = (),
        contents: Contents | None = None,
    ) -> None:
        self._functions: dict[str, Function] = {}
        for function in functions:
            if self._functions.setdefault(function.name, function) is not function:
                raise UserError(
                    f"two functions of a module are called {function.name}",
                    remedy="give each function a name of its own",
                )
        self.target = target
        self.imported_modules = imported_modules
        self.entry_name = _checked_entry(self._functions, entry)
        self._sources = Sources(sources, disassemble)
        self._contents = contents

    @classmethod
    def from_binary(
        cls,
        binary: Binary,
        signatures: Iterable[Signature],
        *,
        target: str,
        sources: Mapping[str, str],
        entry: str | None = None,
        symbols: Mapping[str, str] | None = None,
        disassemble: Disassemble | None = None,
    ) -> Module:
        """Load a shared object for this host.

        Args:
            binary: of format `so`.
            signatures: of its functions.
            target: as text.
            sources: language (`loop_ir`, `llvm`) -> text.
            entry: the entry function, by default the first one.
            symbols: name of a function -> its name in the binary, if that differs.
            disassemble: makes the source `asm` when it is requested.

        Raises:
            UserError: a function is missing.
            ToolchainError: the loader refuses the binary.

        Example::

            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> from refcomp.runtime.files.archive import read_archive
            >>> from refcomp.runtime.files.manifest import unpack
            >>> A = rc.placeholder((4,), name="A")
            >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
            >>> s = rc.create_schedule(B)
            >>> module = rc.build(s, [A, B], name="increment")
            >>> folder = TemporaryDirectory()
            >>> path = str(Path(folder.name, "increment.module"))
            >>> module.save(path)
            >>> contents = unpack(path, read_archive(path))
            >>> binary, signatures = contents.binary, contents.signatures
            >>> rc.runtime.Module.from_binary(binary, signatures, target="llvm", sources={})
            <refcomp module for llvm: increment>
        """
        listed = tuple(signatures)
        names = {signature.name: signature.name for signature in listed}
        contents = ModuleContents(
            signatures=listed,
            entry=entry or next(iter(names), ""),
            target=target,
            binary=binary,
            symbols=names | dict(symbols or {}),
            sources=dict(sources),
            cpu_features=_cpu_features(target),
        )
        return cls.from_contents(contents, disassemble)

    @classmethod
    def from_contents(
        cls, contents: ModuleContents, disassemble: Disassemble | None = None
    ) -> Module:
        """Load the contents of a module file for this host.

        Args:
            contents: what the file holds: the code, the signatures and the source texts.
            disassemble: makes the source `asm` when it is requested.

        Raises:
            UserError: a function is missing.
            ToolchainError: the loader refuses the binary.

        Example::

            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> from refcomp.runtime.files.archive import read_archive
            >>> from refcomp.runtime.files.manifest import unpack
            >>> A = rc.placeholder((4,), name="A")
            >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
            >>> s = rc.create_schedule(B)
            >>> module = rc.build(s, [A, B], name="increment")
            >>> folder = TemporaryDirectory()
            >>> path = str(Path(folder.name, "increment.module"))
            >>> module.save(path)
            >>> contents = unpack(path, read_archive(path))
            >>> rc.runtime.Module.from_contents(contents)
            <refcomp module for llvm: increment>
        """
        library = load_shared_object(contents.binary)
        functions = [
            HostFunction(signature, library, contents.symbols[signature.name])
            for signature in contents.signatures
        ]
        return cls(
            functions,
            target=contents.target,
            sources=contents.sources,
            entry=contents.entry,
            disassemble=disassemble,
            contents=contents,
        )

    @classmethod
    def from_programs(
        cls,
        programs: Sequence[tuple[Signature, Program]],
        code: Source | Binary,
        *,
        target: str,
        device: Device,
        sources: Mapping[str, str],
        device_sources: Mapping[str, str],
        symbols: Mapping[str, str] | None = None,
        entry: str | None = None,
        disassemble: Disassemble | None = None,
    ) -> Module:
        """Return a module whose kernels run on `device`.

        Args:
            programs: signature and program of each function. Kernels have unique names.
            code: of all kernels, for the device's driver.
            target: as text.
            device: where calls run by default. If it exists, it loads the code at once.
            sources: language -> text. The module adds `launch`, the host functions.
            device_sources: the same of the kernels, for the imported module.
            symbols: name of a kernel -> its name in `code`, if that differs.
            entry: the entry function, by default the first one.
            disassemble: makes the source `asm` of the imported module when it is requested.

        If the device does not exist, the first call raises UserError.

        Raises:
            ToolchainError: the device refuses the code.

        Example::

            >>> from refcomp.ir.parser import parse_program
            >>> from refcomp.foundation.artifacts import Source
            >>> A = rc.placeholder((4,), name="A")
            >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
            >>> s = rc.create_schedule(B)
            >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
            >>> built = rc.build(s, [A, B], target="opencl", name="increment")
            >>> kernels = built.imported_modules[0]
            >>> program = parse_program(built.get_source("launch") + '''
            ... func increment_kernel0(B: f32[4] out, A: f32[4]) {
            ...   for threadIdx.x in range(4) threadIdx.x {
            ...     B@[threadIdx.x] = A@[threadIdx.x] + 1.0f32
            ...   }
            ... }''')
            >>> rc.runtime.Module.from_programs(
            ...     [(built.entry.signature, program)],
            ...     Source(kernels.get_source("opencl"), "opencl"),
            ...     target="opencl",
            ...     device=rc.device("opencl"),
            ...     sources={},
            ...     device_sources={},
            ... )
            <refcomp module for opencl: increment>
        """
        from refcomp.runtime import launch  # noqa: PLC0415  (of devices)
        from refcomp.runtime.files import program_manifest  # noqa: PLC0415  (of devices)

        names = symbols or {}
        contents = program_manifest.ProgramContents(
            signatures=tuple(signature for signature, _ in programs),
            launch=print_funcs(program.host for _, program in programs),
            kernels=tuple(
                launch.kernel_signature(kernel, names.get(kernel.name))
                for _, program in programs
                for kernel in program.kernels
            ),
            device=device.kind,
            code=code,
            entry=entry or next((signature.name for signature, _ in programs), ""),
            target=target,
            sources=dict(sources),
            device_sources=dict(device_sources),
        )
        hosts = [program.host for _, program in programs]
        return cls.from_program_contents(contents, hosts, device, disassemble)

    @classmethod
    def from_program_contents(
        cls,
        contents: ProgramContents,
        hosts: Sequence[PrimFunc],
        device: Device,
        disassemble: Disassemble | None = None,
    ) -> Module:
        """Load the contents of a module file whose kernels run on a device.

        Args:
            contents: what the file holds: the code, the signatures and the source texts.
            hosts: the host functions, in the order of the signatures.
            device: where calls run by default. If it exists, it loads the code at once.
            disassemble: makes the source `asm` of the imported module when it is requested.

        Raises:
            ToolchainError: the device refuses the code.

        Example::

            >>> from refcomp.runtime.files import archive, manifest, program_manifest
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> A = rc.placeholder((4,), name="A")
            >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
            >>> s = rc.create_schedule(B)
            >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
            >>> built = rc.build(s, [A, B], target="opencl", name="increment")
            >>> folder = TemporaryDirectory()
            >>> path = str(Path(folder.name, "increment.module"))
            >>> built.save(path)
            >>> members = archive.read_archive(path)
            >>> checked = manifest.checked_manifest(path, members)
            >>> contents = program_manifest.unpack_program(path, checked, members)
            >>> hosts = program_manifest.read_hosts(path, contents)
            >>> rc.runtime.Module.from_program_contents(contents, hosts, rc.device("opencl"))
            <refcomp module for opencl: increment>
        """
        from refcomp.runtime.programs import (  # noqa: PLC0415  (of devices)
            device_module,
            program,
        )

        code = program.DeviceCode(
            contents.code, contents.kernels, device, contents.device_sources
        )
        functions = [
            program.ProgramFunction(signature, host, code)
            for signature, host in zip(contents.signatures, hosts, strict=True)
        ]
        # A device that is missing now may exist where the module file is loaded.
        if device.exist:
            code.load()
        kernels = device_module.DeviceModule(
            code,
            target=contents.target,
            sources=contents.device_sources,
            disassemble=disassemble,
        )
        return cls(
            functions,
            target=contents.target,
            sources={"launch": contents.launch, **contents.sources},
            entry=contents.entry,
            imported_modules=(kernels,),
            contents=contents,
        )

    @classmethod
    def from_callables(
        cls,
        callables: Mapping[str, ArrayCallable],
        signatures: Iterable[Signature],
        *,
        target: str,
        sources: Mapping[str, str],
        entry: str | None = None,
    ) -> Module:
        """Return a module of Python callables.

        Args:
            callables: name -> a function that takes one list of numpy arrays and scalars, and
                writes the outputs in place.
            signatures: the signature of each function.
            target: the target as text.
            sources: language -> text.
            entry: the name of the entry function; None for the first one.

        Raises:
            UserError: there is no signature, or the entry is missing.

        Example::

            >>> A = rc.placeholder((4,), name="A")
            >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
            >>> s = rc.create_schedule(B)
            >>> module = rc.build(s, [A, B], target="interp", name="increment")
            >>> def double(args):
            ...     args[1][:] = args[0] * 2
            >>> doubling = rc.runtime.Module.from_callables(
            ...     {"increment": double}, [module.entry.signature], target="interp", sources={}
            ... )
            >>> b = np.zeros(4, "float32")
            >>> doubling(np.ones(4, "float32"), b)
            >>> print(b)
            [2. 2. 2. 2.]
        """
        functions = [
            PythonFunction(signature, callables[signature.name])
            for signature in signatures
        ]
        return cls(functions, target=target, sources=sources, entry=entry)

    @property
    def contents(self) -> ModuleContents | ProgramContents | None:
        """Return what a module file would hold; None if the module cannot be saved as one."""
        contents = self._contents
        if isinstance(contents, ObjectContents | LinkedContents | JoinedContents):
            return None
        return contents

    @property
    def languages(self) -> tuple[str, ...]:
        """The formats that `get_source` knows, without the disassembly."""
        return self._sources.languages

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The signature of each function, by name."""
        return MappingProxyType(
            {name: f.signature for name, f in self._functions.items()}
        )

    @property
    def entry(self) -> Function:
        """The function that a call of the module calls."""
        return self._functions[self.entry_name]

    def __getitem__(self, name: str) -> Function:
        function = self._functions.get(name)
        if function is None:
            remedy = f"it has: {', '.join(self._functions)}"
            raise UserError(
                f"the module has no function {name!r}",
                remedy=advise(name, self._functions, remedy),
            )
        return function

    def __call__(self, *args: object, **named: object) -> None:
        if named:
            raise self.entry.refusal_of_names(named)
        self.entry(*args)

    def __repr__(self) -> str:
        return f"<refcomp module for {self.target}: {', '.join(self._functions)}>"

    def get_source(self, format: str | None = None) -> str:
        """Return a source text.

        Args:
            format: `loop_ir`, `llvm` or `asm`. If the target is a device, `loop_ir` or `launch`,
                and `imported_modules[0]` has others. None is the one nearest to the target.

        Raises:
            UserError: the text is missing.
        """
        return self._sources.get(format)

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the file that the suffix of `path` names.

        - `.refcomp`, `.module`, `.zip` or none: a module file, which `load_module` reads.
        - `.so`: a shared object with the description of its functions. Programs in other languages
          link it, and `load_module` reads it. For devices it holds the code of the kernels, and
          only `load_module` can run them.
        - `.ll`, `.cl`, `.cu`: the text in LLVM IR, OpenCL C or CUDA C++. For devices it has
          only the kernels.
        - `.o`, `.s`, `.bc`: the object, the assembly or the optimised bitcode, which LLVM's tools
          make of the LLVM IR. A linker makes a program or a library of an object.
          For a target with `-system-lib`, these files, `.so` and the `.ll` of hosts describe their
          functions, so that `refcomp.system_lib` finds them wherever they are linked. For devices,
          the description has the code of the kernels.
        - `.hsaco`, `.cubin`, `.fatbin`, `.ptx`: the code of the kernels, for other programs and for
          `load_code_object`.

        Args:
            path: the file, which is replaced if it exists.
            fmt: the suffix without its dot, if `path` has another one.

        Raises:
            Unsupported: the module does not have this form, or no form has the suffix.
            UserError: a function of a shared object needs Python or checks its accesses (build
                option `check_bounds`), or the file cannot be written.
            ToolchainError: a tool for `.o`, `.s` or `.bc` is missing or fails.
        """
        from refcomp.runtime.files import suffixes  # noqa: PLC0415  (of files)

        name = checked_path(path, "a module file")
        suffixes.write_form(name, fmt, self.target, self._contents)

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Write the file that the suffix of `path` names, as `save` does.

        Args:
            path: the file, which is replaced if it exists.

        Raises:
            Unsupported: the module does not have this form, or no form has the suffix.
            UserError: as by `save`.
            ToolchainError: as by `save`.
        """
        self.save(path)

    def time_evaluator(
        self,
        name: str,
        device: Device,
        number: int = 10,
        repeat: int = 3,
        min_repeat_ms: float = 0,
    ) -> Callable[..., TimeResult | WorkResult]:
        """Return a callable that measures function `name` on the arguments that it receives.

        Args:
            name: of the function.
            device: the one that the function runs on.
            number: calls in a repetition.
            repeat: number of repetitions.
            min_repeat_ms: minimum duration of a repetition. `number` grows until it is reached.

        An emulated device counts the work of one call instead of measuring time.

        Raises:
            UserError: the function does not run on `device`, or a number is out of range.

        Source: TVM, Module.time_evaluator.
        """
        from refcomp.runtime.timing import time_evaluator  # noqa: PLC0415  (measures)

        return time_evaluator(self[name], device, number, repeat, min_repeat_ms)


def _checked_entry(functions: Mapping[str, Function], entry: str | None) -> str:
    if not functions:
        raise UserError(
            "a module needs a function", remedy="pass at least one signature"
        )
    if entry is None:
        return next(iter(functions))
    if entry not in functions:
        raise UserError(
            f"the entry function {entry!r} is not in the module",
            remedy=f"it has: {', '.join(functions)}",
        )
    return entry


def _cpu_features(target: str) -> tuple[str, ...]:
    """Return the instruction sets that code for `target` needs.

    If it was compiled for this processor, these are all that this processor has.
    """
    if option_in(target, "mcpu", "native") != "native":
        return ()
    return tuple(sorted(machine.cpu_features()))
