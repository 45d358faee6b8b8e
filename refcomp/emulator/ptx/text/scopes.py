"""The names of a function: registers, variables and labels, in blocks within blocks.

A name of an inner block hides the same name of an outer block. A `PtxFunction` has no blocks. So a
name that several blocks declare gets a number, as in `temp#1`. But parameters of calls (`.param`)
of the same size share one name and its memory, because two calls never overlap.

A range such as `%r<100>` declares many registers. Those that an instruction names are listed.

Source: "Parallel Thread Execution ISA", sections "Special Registers", "Vectors" and "Parameterized
Variable Names".
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field, replace

from refcomp.emulator.ptx.text.module import (
    Immediate,
    Operand,
    Register,
    SymbolAddress,
    Variable,
    Vector,
)
from refcomp.emulator.ptx.text.tokens import Tokens, damaged

_MAX_DEPTH = 256
MAX_RANGE = 1 << 24
_SPECIAL = re.compile(
    r"""%(?:
      (?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyz])?
    | laneid | warpid | nwarpid | smid | nsmid | gridid | is_explicit_cluster
    | cluster_ctarank | cluster_nctarank | lanemask_(?:eq|le|lt|ge|gt)
    | clock | clock_hi | clock64 | pm[0-7] | pm[0-7]_64 | envreg(?:\d|[12]\d|3[01])
    | globaltimer | globaltimer_lo | globaltimer_hi
    | reserved_smem_offset_(?:begin|end|cap|[01])
    | total_smem_size | aggr_smem_size | dynamic_smem_size | current_graph_exec
    )""",
    re.VERBOSE,
)
_CONSTANTS = {"WARP_SZ": Immediate("int", 32)}
_PARTS = "xyzw"
_COLORS = "rgba"  # other names of the parts x, y, z, w of a vector
_MAX_DIGITS = len(str(MAX_RANGE))


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a label."""

    user: int | str  # number of an instruction, or name of a list of labels
    name: str
    where: str  # quoted


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of registers, numbered from 0 on."""

    count: int
    type: str
    parts: int  # of each, if they are vectors; 1 otherwise


@dataclass(slots=True)
class _ScopeBlock:
    """The names of a block."""

    names: dict[str, Operand] = field(default_factory=dict)
    ranges: dict[str, _Range] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # name -> unique name
    uses: list[_Use] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Renamed:
    """A use of a label, and the unique name of the label."""

    user: int | str
    name: str
    unique: str


class Scopes:
    """The names of one function while it is read.

    Args:
        tokens: the tokens, for errors.
        globals_: names outside of functions.

    Attributes:
        registers: register -> its type, for each register that was named.
        variables: the declared variables, by their unique names.
        renamed: the uses of labels whose unique names differ from the names in the text.
    """

    def __init__(self, tokens: Tokens, globals_: Container[str]) -> None:
        self._tokens = tokens
        self._globals = globals_
        self._blocks = [_ScopeBlock()]
        self._counts: dict[
            str, int
        ] = {}  # name -> the number of declarations with this name
        self._shared: dict[tuple[str, int, int], Variable] = {}
        self.registers: dict[str, str] = {}
        self.variables: dict[str, Variable] = {}
        self.renamed: list[Renamed] = []

    @property
    def depth(self) -> int:
        """The number of blocks that are open."""
        return len(self._blocks)

    def open(self) -> None:
        """Open a block."""
        if len(self._blocks) >= _MAX_DEPTH:
            self._tokens.fail(f"blocks are nested more than {_MAX_DEPTH} deep")
        self._blocks.append(_ScopeBlock())

    def close(self) -> None:
        """Close a block. Record the unique names for uses of its labels.

        Raises:
            DamagedPtx: a label is missing, and no outer block is left that could declare it.
        """
        block = self._blocks.pop()
        for use in block.uses:
            unique = block.labels.get(use.name)
            if unique is None:
                if not self._blocks:
                    raise damaged(f"the label {use.name} is missing", use.where)
                self._blocks[-1].uses.append(use)
            elif unique != use.name:
                self.renamed.append(Renamed(use.user, use.name, unique))

    # Declarations.

    def declare_registers(
        self, name: str, type_: str, parts: int, count: int | None
    ) -> None:
        """Declare a register, or `count` of them with numbers, each a vector of `parts`."""
        block = self._blocks[-1]
        if count is not None:
            self._check(name, block.ranges)
            block.ranges[name] = _Range(count, type_, parts)
        else:
            self._check(name, block.names)
            self._declare_register(block, name, type_, parts)

    def _declare_register(
        self, block: _ScopeBlock, name: str, type_: str, parts: int
    ) -> None:
        unique = self._unique(name)
        if parts == 1:
            block.names[name] = Register(unique)
            self.registers[unique] = type_
            return
        vector = tuple(Register(f"{unique}.{part}") for part in _PARTS[:parts])
        block.names[name] = Vector(vector)
        for part, color, register in zip(_PARTS, _COLORS, vector, strict=False):
            block.names[f"{name}.{part}"] = register
            block.names[f"{name}.{color}"] = register
            self.registers[register.name] = type_

    def declare_variable(self, variable: Variable) -> None:
        """Declare a variable under its unique name."""
        block = self._blocks[-1]
        self._check(variable.name, block.names)
        key = (variable.name, variable.bytes, variable.alignment)
        known = self._shared.get(key) if variable.space == "param" else None
        if known is None:
            known = replace(variable, name=self._unique(variable.name))
            self._shared[key] = known
            self.variables[known.name] = known
        block.names[variable.name] = SymbolAddress(known.name)

    def declare_parameter(self, variable: Variable) -> None:
        """Declare a parameter of the function, or a result."""
        block = self._blocks[-1]
        self._check(variable.name, block.names)
        self._counts[variable.name] = 1
        block.names[variable.name] = SymbolAddress(variable.name)

    def declare_label(self, name: str) -> str:
        """Declare a label. Return its unique name."""
        block = self._blocks[-1]
        self._check(name, block.labels)
        block.labels[name] = unique = self._unique(name)
        return unique

    def _check(self, name: str, names: Container[str]) -> None:
        self._tokens.count_piece()
        if name in names:
            self._tokens.fail(f"{name} is declared twice in a block")

    def _unique(self, name: str) -> str:
        count = self._counts.get(name, int(name in self._globals))
        self._counts[name] = count + 1
        return f"{name}#{count}" if count else name

    # Uses.

    def use_label(self, user: int | str, name: str) -> None:
        """Record a use of a label, which may be declared later."""
        self._blocks[-1].uses.append(_Use(user, name, self._tokens.quote()))

    def find(self, name: str) -> Operand | None:
        """Return the register, vector or variable of a name; None for any other name."""
        for block in reversed(self._blocks):
            found = block.names.get(name)
            if found is None and block.ranges:
                found = self._within_range(block, name)
            if found is not None:
                return found
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        return Register(name) if _SPECIAL.fullmatch(name) else None

    def _within_range(self, block: _ScopeBlock, name: str) -> Operand | None:
        """Declare a register of a range at its first use."""
        whole = name.partition(".")[0]
        digits = len(whole) - len(whole.rstrip("0123456789"))
        for length in range(1, min(digits, _MAX_DIGITS) + 1):
            number = whole[-length:]
            found = block.ranges.get(whole[:-length])
            is_canonical = length == 1 or number[0] != "0"
            if found is not None and is_canonical and int(number) < found.count:
                break
        else:
            return None
        if whole not in block.names:
            self._declare_register(block, whole, found.type, found.parts)
        return block.names.get(name)
