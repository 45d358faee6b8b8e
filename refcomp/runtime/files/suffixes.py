"""The forms in which a module is saved, each named by a suffix.

They are module files, shared objects with a description, plain texts and plain code. Tools make
objects, assembly and bitcode of the LLVM IR. For a target with `-system-lib`, these forms, LLVM IR
and shared objects hold the description of the functions, too. Refuses with Unsupported a form that
the module does not have, and a suffix that promises a form unknown here.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.elf import needed_libraries
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.target import DEFAULT_TARGET, is_system_lib
from refcomp.runtime.files.archive import write_archive, write_described, write_file
from refcomp.runtime.files.bundle import compress_members
from refcomp.runtime.files.code_tools import code_tools, data_holder, describer
from refcomp.runtime.files.manifest import (
    JoinedContents,
    LinkedContents,
    ModuleContents,
    ObjectContents,
    pack,
    pack_description,
)
from refcomp.runtime.files.program_manifest import (
    ProgramContents,
    code_bytes,
    pack_program,
)
from refcomp.runtime.host.callback import refuse_if_called_back

# Suffix -> language of the text.
_TEXTS = {".ll": "llvm", ".cl": "opencl", ".cu": "cuda"}
# Suffix -> format of the code.
_CODES = {
    ".hsaco": "hsaco",
    ".cubin": "cubin",
    ".fatbin": "fatbin",
    ".ptx": "ptx",
}
# Suffixes of module files; '' for a name without one.
MODULE_SUFFIXES = frozenset({"", ".refcomp", ".module", ".zip"})
# Suffix -> command that makes such a file. refcomp runs its like, if it has the tools.
_BY_TOOLS = {
    ".o": "llc -O2 -filetype=obj -relocation-model=pic x.ll -o x.o",
    ".s": "llc -O2 -relocation-model=pic x.ll -o x.s",
    ".bc": "llvm-as x.ll -o x.bc",
}


Contents = (
    ModuleContents | ProgramContents | ObjectContents | LinkedContents | JoinedContents
)


def write_form(path: str, fmt: object, target: str, contents: Contents | None) -> None:
    """Write the form of a module that the suffix `fmt` names, or else that of `path`.

    Args:
        path: the file.
        fmt: the suffix with or without its dot; '' for that of `path`.
        target: that of the module, for messages.
        contents: what can be written; None if the module cannot be saved.
    """
    if not isinstance(fmt, str):
        raise UserError(f"{fmt!r} is not a suffix", remedy='pass a text such as "ll"')
    if isinstance(contents, LinkedContents):
        raise Unsupported(
            f"functions that are linked into {contents.files} cannot be saved again",
            why="their code is a part of what it was linked into",
            remedy="save the module that refcomp.build returned",
        )
    suffix = f".{fmt.removeprefix('.')}" if fmt else PurePath(path).suffix
    if suffix == ".so" and isinstance(contents, ProgramContents):
        _write_device_code(path, contents)
    elif suffix == ".so":
        _write_shared_object(path, machine_code(target, contents))
    elif suffix in MODULE_SUFFIXES:
        write_archive(path, _members(target, contents))
    else:
        write_file(path, _plain_form(suffix, target, contents))


def _write_shared_object(path: str, contents: ModuleContents) -> None:
    refuse_if_called_back(contents.binary.data)
    for signature in contents.signatures:
        if signature.checks:
            # Callers in other languages do not know the status array.
            raise UserError(
                f"{signature.name} checks its accesses, and cannot be a bare shared object",
                why="its caller must pass a status array, and must turn it into an error",
                remedy="save a module file, or build without the build option check_bounds",
            )
    if is_system_lib(contents.target):
        code = _made_by_tools(".so", contents.target, contents)
        contents = replace(contents, binary=Binary(code, "so"))
    members = pack(contents)
    write_described(path, members.pop("binary"), members)


def _write_device_code(path: str, contents: ProgramContents) -> None:
    """Write a shared object that holds the code of kernels, with its description."""
    hold = data_holder()
    if hold is None:
        raise Unsupported(
            "this program cannot write a shared object that holds the code of kernels",
            why="it has only loaded modules, and so has no tools of refcomp.build",
            remedy="save the module as a module file: module.save(path)",
        )
    description = b""
    if is_system_lib(contents.target):
        description = compress_members(pack_program(contents))
    holder = hold(code_bytes(contents.code), description)
    members = pack_program(contents, holder)
    write_described(path, members.pop("binary"), members)


def _members(target: str, contents: Contents | None) -> dict[str, bytes]:
    if isinstance(contents, ProgramContents):
        return pack_program(contents)
    return pack(machine_code(target, contents))


def machine_code(target: str, contents: Contents | None) -> ModuleContents:
    """Return the machine code of a module for hosts, with the libraries that it needs."""
    if isinstance(contents, ModuleContents):
        # Reading the binary is slow, so it is done only now.
        libraries = needed_libraries(contents.binary.data)
        return replace(contents, libraries=libraries)
    if isinstance(contents, ObjectContents):
        raise Unsupported(
            f"code for the machine {contents.machine} is not saved as a file to load",
            why="the linker and the libraries of that machine are not here",
            remedy='write module.save("x.o"), and link it to a C program of that machine: '
            "cc main.c x.o -lm",
        )
    if isinstance(contents, JoinedContents):
        raise Unsupported(
            f"a module for the targets {target} cannot be saved",
            why="a module file is for one target",
            remedy="build and save a module for each of them",
        )
    raise Unsupported(
        f"a module for the target {target} cannot be saved",
        why="it has no machine code",
        remedy="build it for the target 'llvm'",
    )


def _plain_form(suffix: str, target: str, contents: Contents | None) -> bytes:
    if suffix == ".ll":
        return _llvm_text(target, contents)
    if suffix in _TEXTS:
        return _text(suffix, target, contents)
    if suffix in _CODES:
        return _code(suffix, target, contents)
    if suffix in _BY_TOOLS:
        return _made_by_tools(suffix, target, contents)
    raise Unsupported(
        f"no form of a module has the suffix {suffix}",
        remedy="module files end in .refcomp, shared objects in .so, and texts and code in "
        f"{', '.join([*_TEXTS, *_BY_TOOLS, *_CODES])}",
    )


def _made_by_tools(suffix: str, target: str, contents: Contents | None) -> bytes:
    if isinstance(contents, ModuleContents | ObjectContents):
        text = _llvm_text(target, contents).decode("utf-8", "surrogatepass")
    elif isinstance(contents, ProgramContents) and is_system_lib(target):
        # The description has the code of the kernels. Nothing runs on the host.
        text = _described("", contents)
        target = DEFAULT_TARGET
    else:
        raise Unsupported(
            f"a module for the target {target} has no file {suffix}",
            why="such files hold code for processors, made of LLVM IR",
            remedy="build it for the target 'llvm', or save it as a module file: "
            "module.save(path)",
        )
    make = code_tools()
    if make is None:
        raise Unsupported(
            f"this program cannot write the file {suffix}",
            why="it has only loaded modules, and so has no tools of refcomp.build",
            remedy=f'call module.save("x.ll"), and then {_BY_TOOLS[suffix]}',
        )
    return make(text, target, suffix)


def _llvm_text(target: str, contents: Contents | None) -> bytes:
    """Return the LLVM IR of a module for hosts, or of the kernels of another.

    For hosts, it has the description of the functions if the target asks for it.
    """
    text = _text(".ll", target, contents)
    if isinstance(contents, JoinedContents):
        if any(is_system_lib(part) for part, _ in contents.parts):
            raise Unsupported(
                f"a module for the targets {target} has no text that describes its functions",
                remedy="build and save a module for each of them",
            )
        return text
    if isinstance(contents, ModuleContents | ObjectContents) and is_system_lib(target):
        described = _described(text.decode("utf-8", "surrogatepass"), contents)
        return described.encode("utf-8", "surrogatepass")
    return text


def _described(
    text: str, contents: ModuleContents | ObjectContents | ProgramContents
) -> str:
    """Return LLVM IR whose object holds the description of a module, too."""
    describe = describer()
    if describe is None:
        raise Unsupported(
            f"this program cannot write the description of functions for {contents.target}",
            why="it has only loaded modules, and so has no tools of refcomp.build",
            remedy="save the module in the program that builds it",
        )
    if isinstance(contents, ProgramContents):
        members = pack_program(contents)
    else:
        members = pack_description(contents)
    return describe(text, compress_members(members))


def _text(suffix: str, target: str, contents: Contents | None) -> bytes:
    language = _TEXTS[suffix]
    if isinstance(contents, JoinedContents):
        return _text_of_part(suffix, contents)
    texts = None
    if isinstance(contents, ModuleContents | ObjectContents):
        texts = contents.sources
    elif isinstance(contents, ProgramContents):
        texts = contents.device_sources
    if texts is None or language not in texts:
        raise Unsupported(
            f"a module for the target {target} has no text for a file {suffix}",
            remedy=f"it has: {', '.join(texts or ()) or 'no texts'}",
        )
    return texts[language].encode("utf-8", "surrogatepass")


def _text_of_part(suffix: str, contents: JoinedContents) -> bytes:
    """Return the text of the only part of a module for several targets that has it."""
    language = _TEXTS[suffix]
    having = [(target, texts) for target, texts in contents.parts if language in texts]
    if len(having) == 1:
        return having[0][1][language].encode("utf-8", "surrogatepass")
    if having:
        raise Unsupported(
            f"a file {suffix} holds the text of one target, and several parts have one",
            where=", ".join(target for target, _ in having),
            remedy="build and save a module for each of them",
        )
    held = "; ".join(
        f"{target}: {', '.join(texts)}" for target, texts in contents.parts
    )
    raise Unsupported(
        f"no part of the module has a text for a file {suffix}",
        remedy=f"its parts have {held}",
    )


def _code(suffix: str, target: str, contents: Contents | None) -> bytes:
    code = None
    if isinstance(contents, ProgramContents):
        code = contents.code
    if isinstance(code, Binary) and code.format == _CODES[suffix]:
        return code.data
    if suffix == ".hsaco":
        raise Unsupported(
            f"a module for the target {target} has no code object",
            why="code objects are the machine code of AMD GPUs",
            remedy="build it for the target 'rocm', or choose a name without .hsaco",
        )
    raise Unsupported(
        f"a module for the target {target} has no code for a file {suffix}",
        remedy=f"build it for the target 'cuda -code={_CODES[suffix]}'",
    )
