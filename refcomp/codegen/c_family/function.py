"""State of printing one kernel in a language of the C family: text, names, types and operands.

An operand is the text of a C expression, which stands where the value is used. It gets a name of
its own if it is used more than once, or if it is nested too deeply for a C compiler. A user's name
that means something in the language gets an underscore at its end.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from refcomp.codegen.accumulator import Chunk, Chunks, Declarations
from refcomp.codegen.c_family.literals import spell_literal
from refcomp.codegen.spelling import Spelling
from refcomp.foundation.dtype import F32, I32, DType
from refcomp.foundation.errors import CompilerBug, Unsupported
from refcomp.foundation.names import UniqueNames, to_identifier
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.stmt import Stmt

MAX_DEPTH = 40  # nested operators; clang refuses more than 256 nested brackets
_INDENT = "  "
_F16 = DType("float", 16)
_BYTE = DType("uint", 8)
_BITS_OF_HALF = DType("uint", 16)

# expression class -> the function that prints it and returns its operand
ExpressionPrinters = Mapping[type[Expr], Callable[["CFunction", Any], "CExpr"]]
# statement class -> the function that prints it
StatementPrinters = Mapping[type[Stmt], Callable[["CFunction", Any], None]]


@dataclass(frozen=True, slots=True)
class CExpr:
    """An operand: the text of a C expression. A template spells it as this text."""

    text: str
    precedence: int  # of the outermost operator, as the table `operator` has it
    depth: int = 0  # how many operators are nested
    # True if its C type is that of `wrapping_dtype`, not that of its dtype.
    is_wrapping: bool = False
    # For an f16 that is held in an f32: text of the f16's bits, if known.
    half_bits: str = ""

    def __str__(self) -> str:
        return self.text


class CModule:
    """State that all kernels of one file share."""

    def __init__(self, spelling: Spelling, extensions: Collection[str]) -> None:
        self.say = spelling.macros
        self.tables = spelling.tables
        self.prelude = Declarations()  # functions before the kernels
        self.functions: list[Chunk] = []  # the kernels
        self.enabled_extensions: dict[str, None] = {}  # in the order of their first use
        self._offered = frozenset(extensions)  # by the device
        self.has_half = self.offers("f16")
        reserved = [self.tables["reserved_in_c"], self.tables["reserved"]]
        words = " ".join(table["words"] for table in reserved)
        patterns = [pattern for table in reserved for pattern in table["patterns"]]
        self._reserved = frozenset(words.split())
        self._patterns = re.compile("|".join(patterns))

    def offers(self, feature: str) -> bool:
        """Return True if the device has the extension `feature`, a key of the table `extension`."""
        return self.tables["extension"][feature] in self._offered

    def use(self, feature: str, what: str) -> None:
        """Enable the extension `feature`. Raise Unsupported(`what`) if the device lacks it."""
        extension = self.tables["extension"][feature]
        if not self.offers(feature):
            raise Unsupported(
                f"{what} on this device",
                why=f"it does not offer {extension}",
                remedy="use another dtype, or another device",
            )
        if feature in self.tables["pragmas"]:
            self.enabled_extensions[extension] = None

    def define(self, name: str, macro: Callable[..., str], /, **holes: object) -> str:
        """Define the function `name` before the kernels, unless it is defined. Return its name."""
        prefix = self.say.function_prefix()
        self.prelude.add(
            name,
            macro,
            prefix=prefix,
            name=name,
            **holes,
        )
        return name

    def value_dtype(self, dtype: DType) -> DType:
        """Return the dtype that holds values of `dtype`.

        A vector of bools is held in a vector of bytes, 0 or -1. An f16 is held in an f32 if the
        device has no f16: see Note [f16 in f32] of half.py.
        """
        if dtype.is_bool and dtype.lanes > 1:
            return DType("int", 8, dtype.lanes)
        if dtype.element == _F16 and not self.has_half:
            return F32.with_lanes(dtype.lanes)
        return dtype

    def memory_dtype(self, dtype: DType) -> DType:
        """Return the dtype that stores values of `dtype` in memory. A bool is stored as a byte."""
        if dtype.is_bool:
            return _BYTE.with_lanes(dtype.lanes)
        if dtype.element == _F16 and not self.has_half:
            return _BITS_OF_HALF.with_lanes(dtype.lanes)
        return dtype

    def type_of(self, dtype: DType) -> str:
        """Return the type of a value of `dtype`."""
        return self._spell(self.value_dtype(dtype))

    def memory_type_of(self, dtype: DType) -> str:
        """Return the type in memory of a value of `dtype`."""
        return self._spell(self.memory_dtype(dtype))

    def _spell(self, dtype: DType) -> str:
        element = str(dtype.element)
        if element not in self.tables["type"]:
            raise CompilerBug(
                f"a value of dtype {dtype} reaches the printer of C",
                why="bfloat16 must be lowered before (lower_bfloat16); strings have no value",
            )
        if element in self.tables["extension"]:
            self.use(element, f"no value of dtype {element} can be computed")
        spelled = str(self.tables["type"][element])
        if dtype.lanes == 1:
            return spelled
        known = self.tables["lanes"]
        if dtype.lanes not in known:
            raise CompilerBug(
                f"a vector of {dtype.lanes} lanes reaches the printer of C",
                why=f"its vectors have {', '.join(map(str, known))} lanes",
            )
        return self.say.vector(element=spelled, lanes=dtype.lanes)

    def literal(self, value: float, dtype: DType) -> CExpr:
        """Return a constant of a scalar dtype."""
        held = self.value_dtype(dtype)
        text, is_atom = spell_literal(self.say, self.tables, value, held)
        return CExpr(text, self.tables["precedence"]["atom" if is_atom else "unary"])

    def identifier(self, name: str) -> str:
        """Return `name` as an identifier that means nothing in the language."""
        wish = to_identifier(name).replace(".", "_")
        return f"{wish}_" if self.is_reserved(wish) else wish

    def is_reserved(self, name: str) -> bool:
        """Return True if `name` means something in the language, or may mean something."""
        return name in self._reserved or self._patterns.fullmatch(name) is not None


class CFunction(Chunks):
    """One kernel while it is printed."""

    def __init__(
        self,
        module: CModule,
        printers: ExpressionPrinters,
        statements: StatementPrinters | None = None,
    ) -> None:
        super().__init__()
        self.statements = statements or {}  # printers of a dialect's own
        self.module = module
        self.say = module.say
        self.tables = module.tables
        self.type_of = module.type_of
        self.literal = module.literal
        self._printers = printers
        self.names: dict[Var | Buffer, str] = {}
        self.declarations: list[str] = []  # lines for the top of the kernel
        self.shared_params: list[str] = []
        self.group_size: list[int] | None = None  # threads on each axis, if constant
        self.divisors: dict[Var, int] = {}  # of integers that lets bind
        self._precedences: dict[str, int] = module.tables["precedence"]
        self._unique = UniqueNames()
        self._scopes: list[list[str]] = [[]]  # names of each block that is open

    # Text.

    def emit(self, text: str) -> None:
        """Add whole lines, indented as deeply as the blocks are nested."""
        super().emit(textwrap.indent(text, _INDENT * (len(self._scopes) - 1)))

    @property
    def is_inside_block(self) -> bool:
        """Return True inside a loop or a branch of the kernel."""
        # The first scope holds the parameters, the second the body.
        return len(self._scopes) > 2

    def declare_above(self, text: str) -> None:
        """Add lines to the top of the kernel."""
        self.declarations.append(textwrap.indent(text, _INDENT))

    def capture_block(self, print_body: Callable[[], object]) -> list[Chunk]:
        """Return what `print_body` emits as a block, whose names end with it."""
        self._scopes.append([])
        body = self.capture(print_body)
        for name in self._scopes.pop():
            self._unique.release(name)
        return body

    # Operands.

    def value(self, expr: Expr) -> CExpr:
        """Return the value of `expr`, in the type of its dtype."""
        operand = self._printers[type(expr)](self, expr)
        return self.shallow(operand, expr.dtype)

    def shallow(self, operand: CExpr, dtype: DType) -> CExpr:
        """Return `operand`, under a name if it is nested too deeply."""
        return operand if operand.depth < MAX_DEPTH else self.bind(operand, dtype)

    def atom(self, operand: CExpr, dtype: DType) -> CExpr:
        """Return `operand`, under a name if it should not be written several times."""
        return operand if operand.depth == 0 else self.bind(operand, dtype)

    def bind(self, operand: CExpr, dtype: DType) -> CExpr:
        """Emit the definition of a constant with the value `operand`. Return its name."""
        name = self.take_name("t")
        held = wrapping_dtype(dtype) if operand.is_wrapping else dtype
        type_ = self.type_of(held)
        self.emit(
            self.say.define(
                type=type_,
                name=name,
                value=operand,
            )
        )
        return replace(self.named(name), is_wrapping=operand.is_wrapping)

    def fit(self, operand: CExpr, precedence: int) -> CExpr:
        """Return `operand`, in parentheses if it binds less tightly than `precedence`."""
        if operand.precedence >= precedence:
            return operand
        return replace(operand, text=self.say.parenthesised(value=operand))

    def compound(
        self,
        macro: Callable[..., str],
        /,
        *,
        precedence: int | None = None,
        is_wrapping: bool = False,
        **holes: object,
    ) -> CExpr:
        """Return the operand that `macro` makes of `holes`.

        Args:
            macro: a macro of the language's templates.
            precedence: of the operator that the macro spells. None: it needs no parentheses.
            is_wrapping: as in CExpr.
            holes: arguments of the macro: operands, lists of operands, and any other values.
        """
        if precedence is None:
            precedence = self._precedences["atom"]
        depth = max(map(_depth, holes.values()), default=0) + 1
        return CExpr(macro(**holes), precedence, depth, is_wrapping)

    def infix(
        self,
        operator: str,
        a: CExpr,
        b: CExpr,
        *,
        is_wrapping: bool = False,
    ) -> CExpr:
        """Return `operator`, a key of the table `operator`, between two operands."""
        entry = self.tables["operator"][operator]
        return self.compound(
            self.say.infix,
            precedence=entry["precedence"],
            is_wrapping=is_wrapping,
            a=self.fit(a, entry["left"]),
            symbol=entry["symbol"],
            b=self.fit(b, entry["right"]),
        )

    def call(self, function: str, *arguments: CExpr) -> CExpr:
        """Return a call of `function` by its name."""
        return self.compound(self.say.call, function=function, arguments=arguments)

    def cast(self, operand: CExpr, dtype: DType, *, is_wrapping: bool = False) -> CExpr:
        """Return a scalar converted to `dtype` by C's own rules."""
        unary = self._precedences["unary"]
        return self.compound(
            self.say.cast,
            precedence=unary,
            is_wrapping=is_wrapping,
            type=self.type_of(dtype),
            a=self.fit(operand, unary),
        )

    def choice(self, condition: CExpr, yes: CExpr, no: CExpr) -> CExpr:
        """Return a choice by a scalar condition. C evaluates only the chosen operand."""
        choice = self._precedences["choice"]
        return self.compound(
            self.say.choose,
            precedence=choice,
            condition=self.fit(condition, choice + 1),
            yes=self.fit(yes, choice + 1),
            no=self.fit(no, choice + 1),
        )

    def narrowed(self, operand: CExpr, dtype: DType) -> CExpr:
        """Return `operand` converted back to `dtype` if C has widened it.

        C widens scalars of small integer types, but a function may be overloaded by its type.
        """
        is_widened = dtype.is_int and wrapping_dtype(dtype).bits > dtype.bits
        return self.cast(operand, dtype) if is_widened else operand

    # Vectors.

    def vector(self, dtype: DType, lanes: list[CExpr]) -> CExpr:
        """Return a vector with the operands `lanes`. A single operand stands for all lanes."""
        type_ = self.type_of(dtype)
        return self.compound(self.say.vector_of, type=type_, values=lanes)

    def splat(self, value: float, dtype: DType) -> CExpr:
        """Return a vector with the constant `value` in each lane."""
        # C has no literals of small integers, and converts others to the type of the lanes.
        is_small = dtype.is_int and dtype.bits < I32.bits
        literal = self.literal(value, I32 if is_small else dtype.element)
        return self.vector(dtype, [literal])

    def lane(self, vector: CExpr, number: int) -> CExpr:
        """Return one lane of an operand that is an atom."""
        atom = self._precedences["atom"]
        name = self.tables["lane_names"][number]
        return CExpr(self.say.lane(vector=self.fit(vector, atom), number=name), atom)

    def lane_by_lane(
        self, dtype: DType, vectors: list[CExpr], apply: Callable[..., CExpr]
    ) -> CExpr:
        """Return the vector of `apply` on each lane of `vectors`, which are atoms."""
        lanes = [
            apply(*(self.lane(vector, number) for vector in vectors))
            for number in range(dtype.lanes)
        ]
        return self.vector(dtype, lanes)

    # Names.

    def name(self, item: Var | Buffer) -> str:
        """Return a new name for a variable or buffer, until the end of the block."""
        self.names[item] = self.take_name(self.module.identifier(item.name))
        return self.names[item]

    def name_of_kernel(self, item: Buffer) -> str:
        """Return a new name for a buffer, until the end of the kernel."""
        self.names[item] = self._unique.take(self.module.identifier(item.name))
        return self.names[item]

    def name_of(self, item: Var | Buffer) -> CExpr:
        """Return the name of a variable or buffer. Raise CompilerBug if it has none."""
        if item not in self.names:
            raise CompilerBug(f"{item.name} is used where it is not bound")
        return self.named(self.names[item])

    def named(self, name: str) -> CExpr:
        """Return the operand whose text is `name`."""
        return CExpr(name, self._precedences["atom"])

    def take_name(self, wish: str) -> str:
        """Return `wish`, numbered if it is taken. The name is taken until the end of the block."""
        name = self._unique.take(wish)
        self._scopes[-1].append(name)
        return name

    def drop_name(self, name: str) -> None:
        """Give back a name that was not needed."""
        self._scopes[-1].remove(name)
        self._unique.release(name)


def _depth(hole: object) -> int:
    """Return the depth of the operands in one hole of a macro."""
    if isinstance(hole, CExpr):
        return hole.depth
    if isinstance(hole, list | tuple):
        return max(map(_depth, hole), default=0)
    return 0


def wrapping_dtype(dtype: DType) -> DType:
    """Return the unsigned dtype in which C adds and multiplies integers of `dtype`.

    C widens scalars of small integer types to int, whose overflow is undefined. So a scalar has at
    least 32 bits.
    """
    bits = dtype.bits if dtype.lanes > 1 else max(32, dtype.bits)
    return DType("uint", bits, dtype.lanes)
