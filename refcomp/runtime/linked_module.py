"""The module of all functions that are linked into this process and describe themselves.

Refuses with UserError:

- a process without such functions, and a name that two objects have;
- a description that is damaged, or is for another version of refcomp, another machine or a
  processor with more instruction sets;
- a function that its library does not export.
"""

from __future__ import annotations

import ctypes

from refcomp.foundation.errors import UserError
from refcomp.runtime.device import device
from refcomp.runtime.files.bundle import decompress_members
from refcomp.runtime.files.damage import damaged
from refcomp.runtime.files.manifest import (
    LINKED,
    MANIFEST,
    LinkedContents,
    ModuleContents,
    checked_manifest,
    unpack,
)
from refcomp.runtime.files.program_manifest import (
    ProgramContents,
    read_hosts,
    unpack_program,
)
from refcomp.runtime.host import callback, thread_pool
from refcomp.runtime.host.linked_objects import LinkedObjects, linked_objects
from refcomp.runtime.host.machine_code import HostFunction
from refcomp.runtime.joined_module import joined
from refcomp.runtime.module import Module


def system_lib() -> Module:
    """Return a module of all functions that are linked into this process.

    Build them for a target with the option `-system-lib`, such as `llvm -system-lib` or
    `opencl -system-lib`, and save objects: `module.save("f.o")`. A linker
    makes a library of one or more objects: `cc -shared f.o g.o -o lib.so -lm`. Load the library in
    any way, such as `ctypes.CDLL("./lib.so")`. `module.export_library("lib.so")` links a library
    of one module.

    A library stays loaded after the first call. A later call finds libraries that were loaded
    meanwhile. A linker takes an object of an archive `.a` only if something refers to it, unless
    the option `--whole-archive` is given.

    Returns:
        The module. Its first function is its entry.

    Raises:
        UserError: no function is there, two have the same name, a description is damaged, or it is
            for another version of refcomp, another machine or a processor with more instruction
            sets. Or a library does not export a function.

    Source: TVM, tvm.module.system_lib.

    Example::

        >>> import ctypes, pathlib, tempfile
        >>> A = rc.placeholder((4,), name="A")
        >>> B = rc.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "lib.so"
        >>> s = rc.create_schedule(B)
        >>> rc.build(s, [A, B], "llvm -system-lib", name="linked_increment").save(path)
        >>> library = ctypes.CDLL(str(path))
        >>> b = np.empty(4, "float32")
        >>> rc.system_lib()["linked_increment"](np.arange(4, dtype="float32"), b)
        >>> print(b)
        [1. 2. 3. 4.]
    """
    found = [
        (linked, _read(linked.file, description))
        for linked in linked_objects()
        for description in linked.descriptions
    ]
    if not found:
        raise UserError(
            "no function is linked into this process for system_lib",
            why="none of its libraries has an object of a target with -system-lib",
            remedy='write refcomp.build(s, args, "llvm -system-lib").save("f.o"), link '
            'cc -shared f.o -o lib.so -lm, and load ctypes.CDLL("./lib.so"). To load what '
            'export_library("x.so") wrote, refcomp.load_module("x.so") needs no such target',
        )
    _refuse_repeated(found)
    # The code of a library uses the variables of the first library that shows them to all.
    everywhere = ctypes.CDLL(None)
    callback.connect(everywhere)
    thread_pool.connect(everywhere)
    modules = [_module_of(linked, contents) for linked, contents in found]
    files = dict.fromkeys(linked.file for linked, _ in found)
    return joined(modules, LinkedContents(", ".join(files)))


def _read(file: str, description: bytes) -> ModuleContents | ProgramContents:
    """Return the contents of a description, after the checks of a module file. UserError."""
    place = _place(file)
    try:
        members = decompress_members(description)
    except ValueError as error:
        raise damaged(place, str(error)) from error
    if MANIFEST not in members:
        raise damaged(place, "it has no manifest")
    manifest = checked_manifest(place, members)
    if "device" in manifest:
        return unpack_program(place, manifest, members)
    contents = unpack(place, members)
    if contents.binary.format != LINKED:
        raise damaged(place, f"its code has the format {contents.binary.format!r}")
    return contents


def _place(file: str) -> str:
    return f"the description of functions in {file}"


def _refuse_repeated(
    found: list[tuple[LinkedObjects, ModuleContents | ProgramContents]],
) -> None:
    """Raise UserError if two objects describe functions of one name."""
    files: dict[str, str] = {}
    for linked, contents in found:
        for signature in contents.signatures:
            name = signature.name
            if name not in files:
                files[name] = linked.file
                continue
            raise UserError(
                f"two functions called {name} are linked into this process",
                where=f"{files[name]} and {linked.file}",
                why="system_lib finds functions by their names alone",
                remedy="load one of these libraries in a new process, or build one of the "
                'functions with another name: refcomp.build(..., name="other")',
            )


def _module_of(
    linked: LinkedObjects, contents: ModuleContents | ProgramContents
) -> Module:
    if isinstance(contents, ProgramContents):
        hosts = read_hosts(_place(linked.file), contents)
        home = device(contents.device)
        return Module.from_program_contents(contents, hosts, home)
    for name, symbol in contents.symbols.items():
        _require_exported(linked, name, symbol)
    functions = [
        HostFunction(signature, linked.library, contents.symbols[signature.name])
        for signature in contents.signatures
    ]
    return Module(
        functions,
        target=contents.target,
        sources=contents.sources,
        entry=contents.entry,
    )


def _require_exported(linked: LinkedObjects, name: str, symbol: str) -> None:
    try:
        linked.library[symbol]
    except AttributeError as error:
        raise UserError(
            f"{linked.file} describes the function {name}, but does not export it",
            why=str(error),
            remedy="link it without an option or a script that hides its symbols. Link a program "
            "with -rdynamic",
        ) from error
