"""State of printing one LLVM function: its text so far, its names, types and constants.

A user's name gets its dots replaced, and a number behind a dot if the name is taken. A name of the
printer's own begins with a dot or has a word behind a dot. So the two kinds never clash.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from refcomp.arith.alignment import divisor_of
from refcomp.codegen.accumulator import Chunk, Chunks, Declarations
from refcomp.codegen.llvm.imports import ImportedFunction
from refcomp.codegen.spelling import Spelling
from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.errors import CompilerBug
from refcomp.foundation.names import UniqueNames, to_identifier
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.stmt import LetStmt, Stmt

# node class -> the function that prints it; for an expression, it returns the operand
ExpressionPrinters = Mapping[type[Expr], Callable[["LlvmFunction", Any], str]]
StatementPrinters = Mapping[type[Stmt], Callable[["LlvmFunction", Any], None]]

_RESERVED = ("num_threads", "status", "result", "captures", "entry")


@dataclass(frozen=True, slots=True)
class TypedValue:
    """An operand with its type, as arguments of calls need it."""

    type: str
    value: str


class LlvmModule:
    """State that all functions of one file share."""

    def __init__(self, spelling: Spelling, triple: str, vector_bits: int) -> None:
        self.say = spelling.macros
        self.tables = spelling.tables
        self.architecture = triple.partition("-")[0]
        self.declarations = Declarations()  # of functions
        # Declarations of variables and of constants of the device library.
        self.globals = Declarations()
        self.requires: set[str] = set()  # libraries to link
        self.functions: list[Chunk] = []
        self.metadata: list[str] = []  # nodes, in the order of their numbers
        # Call of a registered function -> symbol of its description.
        self.descriptions: dict[str, str] = {}
        self.imported: dict[str, ImportedFunction] = {}  # from the user's own LLVM IR
        self._symbols = UniqueNames(separator=".")
        self.vector_bits = vector_bits  # of the widest vector register
        # Of the widest vector of i16 whose products are added in pairs; 0: of none.
        self.word_bits = 0
        self.c_size = I64  # of sizes in C
        self.wavefront_size = 1  # lanes of a wave of the GPU
        self.gpu = ""  # name of the GPU, '' on the host
        # Atomic updates of fewer bits have no instruction.
        self.min_atomic_bits = 0
        self.llvm = 0  # major version that reads the text, where it matters
        # The minimum number of waves for which a SIMD must have registers; 0: no minimum.
        self.min_waves = 0
        libmvec = self.tables["libmvec"]["triple"]
        self.has_libmvec = re.fullmatch(libmvec, triple) is not None
        self._types: dict[DType, str] = {}
        self._memory_types: dict[DType, str] = {}
        self._suffixes: dict[DType, str] = {}
        self._pointers: dict[int, str] = {}
        self._splats: dict[tuple[str, DType], str] = {}

    def take_symbol(self, wish: str) -> str:
        """Return `wish`, with a number behind a dot if another function has that name."""
        return self._symbols.take(wish)

    def has_symbol(self, symbol: str) -> bool:
        """Return True if a function or a constant of this file has the name `symbol`."""
        return symbol in self._symbols

    def type_of(self, dtype: DType) -> str:
        """Return the type of a value of `dtype`."""
        if dtype not in self._types:
            self._types[dtype] = self._spell_type(dtype, self.tables["type"])
        return self._types[dtype]

    def memory_type_of(self, dtype: DType) -> str:
        """Return the type in memory of a value of `dtype`."""
        if dtype not in self._memory_types:
            in_memory = self.tables["type"] | self.tables["type_in_memory"]
            self._memory_types[dtype] = self._spell_type(dtype, in_memory)
        return self._memory_types[dtype]

    def _spell_type(self, dtype: DType, table: Mapping[str, str]) -> str:
        self.require_library(str(dtype.element))
        element = table.get(str(dtype.element))
        if element is None:
            raise CompilerBug(
                f"a value of dtype {dtype} reaches the LLVM printer",
                why="bfloat16 must be lowered before (lower_bfloat16); strings have no value",
            )
        if dtype.lanes == 1:
            return element
        return self.say.vector(lanes=dtype.lanes, element=element)

    def suffix_of(self, dtype: DType) -> str:
        """Return the part of an intrinsic's name that stands for the type."""
        if dtype not in self._suffixes:
            element = str(self.tables["suffix"][str(dtype.element)])
            lanes = "" if dtype.lanes == 1 else f"v{dtype.lanes}"
            self._suffixes[dtype] = f"{lanes}{element}"
        return self._suffixes[dtype]

    def space_of(self, buffer: Buffer) -> int:
        """Return the number of the address space that `buffer` lies in."""
        return int(self.tables["address_space"][buffer.scope])

    def pointer_to(self, space: int) -> str:
        """Return the type of addresses in an address space."""
        if space not in self._pointers:
            self._pointers[space] = self.say.pointer(space=space)
        return self._pointers[space]

    def require_library(self, feature: str) -> None:
        """Link the library that `feature`, a key of the table `library`, needs, if any."""
        library = self.tables["library"].get(feature)
        if library is not None:
            self.requires.add(library)

    def constant(self, value: float, dtype: DType) -> str:
        """Return a constant, or a vector with the constant in each lane of `dtype`."""
        scalar = self._literal(value, dtype.element)
        if dtype.lanes == 1:
            return scalar
        key = (scalar, dtype)
        if key not in self._splats:
            # Only the positive float zero is all zero bits; its literal is zeros after the prefix.
            is_zero = scalar in ("0", self._literal(0.0, dtype.element))
            lanes = [scalar] * dtype.lanes
            splat = self.say.zeros() if is_zero else self.constant_lanes(lanes, dtype)
            self._splats[key] = splat
        return self._splats[key]

    def constant_lanes(self, values: list[int] | list[str], dtype: DType) -> str:
        """Return the constant vector of these integers or literals."""
        element = self.type_of(dtype.element)
        return self.say.constant_vector(element=element, values=values)

    def opcode(self, node: str, dtype: DType) -> str:
        """Return the instruction for the node class `node` on operands of `dtype`."""
        return str(self.tables["opcode"][node][dtype.kind])

    def _literal(self, value: float, dtype: DType) -> str:
        literals = self.tables["literal"]
        if dtype.is_bool:
            return str(literals["true" if value else "false"])
        if not dtype.is_float:
            return str(int(value))
        layout = ">e" if dtype.bits == 16 else ">d"
        return f"{literals[str(dtype)]}{struct.pack(layout, value).hex().upper()}"


class LlvmFunction(Chunks):
    """One function while it is printed."""

    def __init__(
        self,
        module: LlvmModule,
        expressions: ExpressionPrinters,
        statements: StatementPrinters,
    ) -> None:
        super().__init__()
        self.module = module
        self.say = module.say
        self.tables = module.tables
        self.type_of = module.type_of
        self.constant = module.constant
        self._expressions = expressions
        self._statements = statements
        self.names: dict[Var | Buffer, str] = {}
        self.stack: list[str] = []  # allocas, for the entry block
        self.stack_bytes = 0
        self.fails = False  # the function has a status, as memory may be lacking
        self.is_region = False  # of a parallel loop
        self.symbol = ""  # name of the kernel
        self.divisors: dict[Var, int] = {}  # of variables that lets bind, in kernels
        # Variables that differ between threads of a group.
        self.varying: set[Var] = set()
        self._taken = UniqueNames(_RESERVED, separator=".")
        self._count = 0

    def begin_region(self) -> LlvmFunction:
        """Return a function for a parallel region of this one."""
        inner = LlvmFunction(self.module, self._expressions, self._statements)
        inner.is_region = True
        inner.source = self.source
        return inner

    def failure(self) -> str:
        """Return the lines that set the status to "memory is lacking"."""
        return self.say.fail_in_region() if self.is_region else self.say.fail()

    def entry_block(self) -> list[Chunk]:
        """Return the allocas of the stack arrays."""
        return [Chunk("".join(self.stack))]

    # Instructions.

    def value(self, expr: Expr) -> str:
        """Print the computation of `expr`. Return its operand."""
        return self._expressions[type(expr)](self, expr)

    def statement(self, stmt: Stmt) -> None:
        """Print `stmt` and the statements in it."""
        # A chain of lets may be longer than Python's stack is deep.
        while isinstance(stmt, LetStmt):
            self.source = stmt
            self.names[stmt.var] = self.value(stmt.value)
            if stmt.var.dtype.is_int and self.module.gpu:
                self.divisors[stmt.var] = divisor_of(stmt.value, self.divisors)
            stmt = stmt.body
        self.source = stmt
        self._statements[type(stmt)](self, stmt)

    def instruction(self, macro: Callable[..., str], /, **holes: object) -> str:
        """Print `macro` with a fresh name in its hole `result`. Return the name."""
        result = self.fresh()
        self.emit(macro(result=result, **holes))
        return result

    def binary(self, node: str, dtype: DType, a: str, b: str) -> str:
        """Print the instruction for the node class `node` on two operands of `dtype`."""
        return self.instruction(
            self.say.binary,
            opcode=self.module.opcode(node, dtype),
            type=self.type_of(dtype),
            a=a,
            b=b,
        )

    def convert(self, opcode: str, value: str, source: DType, target: DType) -> str:
        """Print the conversion `opcode` of an operand of dtype `source` to `target`."""
        return self.instruction(
            self.say.convert,
            opcode=opcode,
            source=self.type_of(source),
            value=value,
            target=self.type_of(target),
        )

    def declare(
        self, key: object, macro: Callable[..., str], /, **holes: object
    ) -> None:
        """Declare by `macro` what the file needs once; see `Declarations.add`."""
        self.module.declarations.add(key, macro, **holes)

    def call_intrinsic(self, function: str, type_: str, *arguments: TypedValue) -> str:
        """Declare a function of LLVM's own, and print a call of it. Return its result."""
        self.declare(
            function,
            self.say.declare_intrinsic,
            result=type_,
            name=function,
            params=[argument.type for argument in arguments],
        )
        return self.instruction(
            self.say.call, type=type_, function=function, arguments=arguments
        )

    # Names.

    def fresh(self) -> str:
        """Return a new name for a result."""
        self._count += 1
        return f"%.{self._count}"

    def number(self) -> int:
        """Return a number that no other label of this function has."""
        self._count += 1
        return self._count

    def name(self, item: Var | Buffer) -> str:
        """Return a new name for a variable or buffer."""
        wish = to_identifier(item.name).replace(".", "_")
        self.names[item] = f"%{self._taken.take(wish)}"
        return self.names[item]

    def name_of(self, item: Var | Buffer) -> str:
        """Return the name of a variable or buffer. Raise CompilerBug if it has none."""
        if item not in self.names:
            raise CompilerBug(f"{item.name} is used where it is not bound")
        return self.names[item]
