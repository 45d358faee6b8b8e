"""What printing one LLVM function needs: its text so far, its names, its types and constants.

Names of variables and buffers have dots replaced and, where taken, a number behind a dot; names
of the printer's own start with a dot or have a word behind a dot: so neither meets the other.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from refcomp.codegen.accumulator import Chunk, Chunks, Declarations
from refcomp.codegen.alignment import divisor_of
from refcomp.codegen.llvm.imports import ImportedFunction
from refcomp.codegen.spelling import Spelling
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import CompilerBug
from refcomp.foundation.names import UniqueNames, to_identifier
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.stmt import LetStmt, Stmt

ExpressionPrinters = Mapping[type[Any], Callable[["LlvmFunction", Any], str]]
StatementPrinters = Mapping[type[Any], Callable[["LlvmFunction", Any], None]]

_RESERVED = ("num_threads", "status", "result", "captures", "entry")


class LlvmModule:
    """What all functions of one file share."""

    def __init__(self, spelling: Spelling, triple: str, vector_bits: int) -> None:
        self.say, self.tables = spelling.macros, spelling.tables
        self.declarations = Declarations()
        self.globals = Declarations()
        self.requires: set[str] = set()
        self.functions: list[Chunk] = []
        self.descriptions: dict[str, str] = {}  # of calls of registered functions
        self.imported: dict[str, ImportedFunction] = {}
        self._symbols = UniqueNames(separator=".")
        self.vector_bits = vector_bits
        self.wavefront_size = 1  # how many threads of a GPU go in step
        self.gpu = ""  # whose instructions may be named
        self.llvm = 0  # the major version that reads the text, where it matters
        self.least_waves = 0  # that a SIMD of a GPU shall hold; 0: no wish
        self.has_libmvec = (
            re.fullmatch(self.tables["libmvec"]["triple"], triple) is not None
        )
        self._types: dict[DType, str] = {}
        self._memory_types: dict[DType, str] = {}
        self._constants: dict[tuple[str, DType], str] = {}

    def take_symbol(self, wish: str) -> str:
        """`wish`, with a number behind a dot where another function has it."""
        return self._symbols.take(wish)

    def has_symbol(self, symbol: str) -> bool:
        """Whether a function or a constant of this file is called so."""
        return symbol in self._symbols

    def type_of(self, dtype: DType) -> str:
        """The type of a value."""
        if dtype not in self._types:
            self._types[dtype] = self._spell_type(dtype, self.tables["type"])
        return self._types[dtype]

    def memory_type_of(self, dtype: DType) -> str:
        """The type of the same value in memory."""
        if dtype not in self._memory_types:
            in_memory = self.tables["type"] | self.tables["type_in_memory"]
            self._memory_types[dtype] = self._spell_type(dtype, in_memory)
        return self._memory_types[dtype]

    def suffix_of(self, dtype: DType) -> str:
        """The type in the name of an intrinsic."""
        element: str = self.tables["suffix"][str(dtype.element)]
        return element if dtype.lanes == 1 else f"v{dtype.lanes}{element}"

    def space_of(self, buffer: Buffer) -> int:
        """The number of the address space that `buffer` lies in."""
        number: int = self.tables["address_space"][buffer.scope]
        return number

    def bring(self, what: str) -> None:
        """Has the linker bring the library that `what`, a key of the table `brought_by`, needs."""
        library = self.tables["brought_by"].get(what)
        if library is not None:
            self.requires.add(library)

    def constant(self, value: float, dtype: DType) -> str:
        """A constant; a vector of it when `dtype` has several lanes."""
        scalar = self._literal(value, dtype.element)
        if dtype.lanes == 1:
            return scalar
        key = scalar, dtype
        if key not in self._constants:
            self._constants[key] = self._splat(scalar, dtype)
        return self._constants[key]

    def constant_lanes(self, values: list[int], dtype: DType) -> str:
        """The constant vector of these integers."""
        text: str = self.say.constant_vector(self.type_of(dtype.element), values)
        return text

    def opcode(self, node: Expr, dtype: DType) -> str:
        """The instruction that `node` is on operands of `dtype`."""
        code: str = self.tables["opcode"][type(node).__name__][dtype.kind]
        return code

    def _spell_type(self, dtype: DType, table: Mapping[str, str]) -> str:
        self.bring(str(dtype.element))
        element = table.get(str(dtype.element))
        if element is None:
            raise CompilerBug(
                f"a value of dtype {dtype} reaches the LLVM printer",
                why="bfloat16 must be lowered before (lower_bfloat16); strings have no value",
            )
        text: str = (
            element if dtype.lanes == 1 else self.say.vector(dtype.lanes, element)
        )
        return text

    def _splat(self, scalar: str, dtype: DType) -> str:
        # Only the positive float zero is all zero bits; its literal is zeros after the prefix.
        zeros = {"0", self._literal(0.0, dtype.element)}
        if scalar in zeros:
            text: str = self.say.zeros()
            return text
        text = self.say.constant_vector(
            self.type_of(dtype.element), [scalar] * dtype.lanes
        )
        return text

    def _literal(self, value: float, dtype: DType) -> str:
        literals = self.tables["literal"]
        if dtype.is_bool:
            text: str = literals["true" if value else "false"]
            return text
        if not dtype.is_float:
            return str(int(value))
        layout = ">e" if dtype.bits == 16 else ">d"
        return f"{literals[str(dtype)]}{struct.pack(layout, value).hex().upper()}"


class LlvmFunction(Chunks):
    """One function while it is printed.

    `expressions` holds for each expression class the function that prints it and returns its
    operand, `statements` for each statement class the function that prints it.
    """

    def __init__(
        self,
        module: LlvmModule,
        expressions: ExpressionPrinters,
        statements: StatementPrinters,
    ) -> None:
        super().__init__()
        self.module, self.say = module, module.say
        self._expressions, self._statements = expressions, statements
        self.names: dict[Var | Buffer, str] = {}
        self.stack: list[str] = []  # macros' text for the entry block
        self.stack_bytes = 0
        self.fails = False  # whether memory may be lacking
        self.is_region = False
        self.symbol = ""
        self.divisors: dict[Var, int] = {}  # of what lets bind, in kernels
        self.varying: set[Var] = (
            set()
        )  # that may differ between the threads of a GPU's group
        self._taken = UniqueNames(_RESERVED, separator=".")
        self._count = 0

    def begin_region(self) -> LlvmFunction:
        """A function for a parallel region of this one."""
        inner = LlvmFunction(self.module, self._expressions, self._statements)
        inner.is_region, inner.source = True, self.source
        return inner

    def failure(self) -> str:
        """The lines that say that memory is lacking."""
        text: str = self.say.fail_in_region() if self.is_region else self.say.fail()
        return text

    def entry_block(self) -> list[Chunk]:
        """What the entry block holds: the stack arrays."""
        return [Chunk("".join(self.stack))]

    def value(self, expr: Expr) -> str:
        """Prints what computes `expr`; its operand."""
        return self._expressions[type(expr)](self, expr)

    def statement(self, stmt: Stmt) -> None:
        """Prints `stmt` and what is in it."""
        # A chain of lets may be longer than Python's stack is deep.
        while isinstance(stmt, LetStmt):
            self.source = stmt
            self.names[stmt.var] = self.value(stmt.value)
            if stmt.var.dtype.is_int and self.module.gpu:
                self.divisors[stmt.var] = divisor_of(stmt.value, self.divisors)
            stmt = stmt.body
        self.source = stmt
        self._statements[type(stmt)](self, stmt)

    def fresh(self) -> str:
        """A name for a result."""
        self._count += 1
        return f"%.{self._count}"

    def number(self) -> int:
        """A number that no other label of this function has."""
        self._count += 1
        return self._count

    def name(self, item: Var | Buffer) -> str:
        """A name for a variable or buffer that is bound here."""
        wish = to_identifier(item.name).replace(".", "_")
        self.names[item] = f"%{self._taken.take(wish)}"
        return self.names[item]

    def name_of(self, item: Var | Buffer) -> str:
        """The name of what has been bound."""
        if item not in self.names:
            raise CompilerBug(f"{item.name} is used where it is not bound")
        return self.names[item]
