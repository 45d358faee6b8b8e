"""Reads PTX, as nvcc and LLVM print it.

    .version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 p) { ... }

Not read, by `Unsupported`: addresses of 32 bits, textures and surfaces, parameters in registers,
and parts of registers. Sections (`.section`) hold descriptions for debuggers and are skipped.

Source: "Parallel Thread Execution ISA", chapters "Syntax" and "Directives".
"""

from __future__ import annotations

import re

from refcomp.emulator.ptx.text.constants import read_number, read_whole
from refcomp.emulator.ptx.text.declarations import SPACES, read_head, read_variables
from refcomp.emulator.ptx.text.functions import read_function, skip_pragma
from refcomp.emulator.ptx.text.module import PtxFunction, PtxModule, Variable
from refcomp.emulator.ptx.text.tokens import Tokens, damaged

_LINKAGES = (".extern", ".visible", ".weak", ".common")
_TARGET = re.compile(r"sm_[1-9]\d{1,2}[af]?")
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})")
_FILE = re.compile(r'\.file\s+(\d{1,9})\s+"([^"\n]*)"')
_ADDRESS_BITS = 64
_MAX_FILES = 100_000


def read_ptx(text: str) -> PtxModule:
    """Read a PTX file.

    Raises:
        DamagedPtx: the text is not PTX, or not all of it.
        Unsupported: the text is PTX that the emulator does not read.
    """
    return _PtxReader(text).read()


class _PtxReader:
    """A module while it is read."""

    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._files = self._file_names(text)
        self._functions: dict[str, PtxFunction] = {}
        self._variables: dict[str, Variable] = {}
        self._names: set[str] = set()  # the names of all functions and variables
        self._aliases: dict[str, str] = {}
        self._used: dict[str, str] = {}  # name -> its first use, quoted

    def read(self) -> PtxModule:
        """Read the whole file."""
        version = self._version()
        target = self._target()
        while self._tokens.kind != "end":
            if self._tokens.kind != "directive":
                self._tokens.fail(f"expected a directive, not {self._tokens.shown}")
            self._directive()
        for alias, name in self._aliases.items():
            if name in self._functions:
                self._functions[alias] = self._functions[name]
                self._names.add(alias)
        for name, where in self._used.items():
            if name not in self._names:
                raise damaged(f"{name} is not declared", where)
        return PtxModule(
            version, target, self._functions, tuple(self._variables.values())
        )

    def _file_names(self, text: str) -> dict[int, str]:
        """Return the names of source files. Their directives may come after the functions."""
        files: dict[int, str] = {}
        for match in _FILE.finditer(text):
            files[int(match[1])] = match[2]
            if len(files) > _MAX_FILES:
                self._tokens.fail(f"it names more than {_MAX_FILES} source files")
        return files

    def _version(self) -> tuple[int, int]:
        tokens = self._tokens
        tokens.expect(".version", "at the beginning")
        match = _VERSION.fullmatch(tokens.text)
        if match is None:
            tokens.fail(f"expected a version, such as 8.0, not {tokens.shown}")
        tokens.advance()
        return int(match[1]), int(match[2])

    def _target(self) -> str:
        """Read `.target` and `.address_size`."""
        tokens = self._tokens
        tokens.expect(".target", "behind the version")
        target = tokens.text
        if not _TARGET.fullmatch(target):
            tokens.fail(f"expected a target, such as sm_90, not {tokens.shown}")
        tokens.advance()
        while tokens.accept(","):
            tokens.name("an option of the target")
        bits = 32
        if tokens.accept(".address_size"):
            bits = read_number(tokens, "the size of addresses")
        if bits != _ADDRESS_BITS:
            tokens.refuse(
                "addresses of 32 bits, which PTX has without .address_size 64",
                "compile for 64 bits, and write .address_size 64 behind .target",
            )
        return target

    def _directive(self) -> None:
        tokens = self._tokens
        linkages = set()
        while tokens.text in _LINKAGES:
            linkages.add(tokens.advance())
        is_extern = ".extern" in linkages
        text = tokens.text
        if text in (".entry", ".func"):
            self._function(is_extern)
        elif text in SPACES or text in (".align", ".attribute"):
            self._variable_list(is_extern)
        elif linkages:
            tokens.fail(f"expected a function or a variable, not {tokens.shown}")
        elif text == ".file":
            self._skip_file()
        elif text == ".section":
            self._skip_section()
        elif text == ".alias":
            self._alias()
        elif tokens.accept(".pragma"):
            skip_pragma(tokens)
        else:
            tokens.fail(f"{text} does not belong outside of functions")

    def _function(self, is_extern: bool) -> None:
        function = read_function(
            self._tokens,
            is_extern=is_extern,
            globals_=self._names,
            files=self._files,
            use=self._use,
        )
        name = function.name
        known = self._functions.get(name)
        self._refuse_second(name, name in self._variables)
        if known is not None and not function.is_declaration:
            self._refuse_second(name, not known.is_declaration)
        self._names.add(name)
        if known is None or not function.is_declaration:
            self._functions[name] = function

    def _variable_list(self, is_extern: bool) -> None:
        tokens = self._tokens
        head = read_head(tokens)
        if head.space not in (".global", ".const", ".shared"):
            tokens.fail(f"a variable in {head.space} is declared outside of functions")
        for variable in read_variables(
            tokens, head, is_extern=is_extern, use=self._use
        ):
            name = variable.name
            known = self._variables.get(name)
            self._refuse_second(name, name in self._functions)
            self._names.add(name)
            if known is None or known.is_extern:
                self._variables[name] = variable
            else:
                self._refuse_second(name, not is_extern)

    def _refuse_second(self, name: str, is_second: bool) -> None:
        if is_second:
            self._tokens.fail(f"{name} is defined twice")

    def _use(self, name: str) -> None:
        """Record that a name is used, and so must be declared somewhere."""
        if name not in self._used:
            self._used[name] = self._tokens.quote()

    def _alias(self) -> None:
        tokens = self._tokens
        tokens.advance()
        alias = tokens.name("an alias")
        tokens.expect(",", "behind the name of an alias")
        name = tokens.name("a function")
        tokens.expect(";", "behind an alias")
        self._use(name)
        self._aliases[alias] = name

    # What is skipped.

    def _skip_file(self) -> None:
        """Skip `.file number "name", time, size`."""
        tokens = self._tokens
        tokens.advance()
        read_number(tokens, "the number of a file")
        tokens.string("the name of a file")
        while tokens.accept(","):
            read_whole(tokens, "what .file says", (1 << 64) - 1)

    def _skip_section(self) -> None:
        tokens = self._tokens
        tokens.advance()
        if tokens.kind not in ("directive", "word"):
            tokens.fail(f"expected the name of a section, not {tokens.shown}")
        tokens.advance()
        tokens.expect("{", "in front of what a section holds")
        while not tokens.accept("}"):
            if tokens.kind == "end":
                tokens.fail("a section is not closed", remedy="give the whole text")
            tokens.advance()
