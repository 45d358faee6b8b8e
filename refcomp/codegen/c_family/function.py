"""What printing one kernel in a language of the C family needs: its text, names, types, operands.

An operand is the text of a C expression. It stands where its value is used, and gets a name of its
own where it would be nested too deeply for a C compiler or is used more than once. Names of users
that mean something in the language get an underscore behind them.
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

DEEPEST = 40  # operators on top of each other; clang gives up at 256 brackets
_INDENT = "  "
_F16 = DType("float", 16)
_BYTE, _BITS_OF_HALF = DType("uint", 8), DType("uint", 16)


@dataclass(frozen=True, slots=True)
class CExpr:
    """The text of an expression, and how tightly its outermost operator binds.

    `depth` counts operators on top of each other. `is_ring` says that the text has the unsigned
    type in which the arithmetic of its dtype wraps, not the type of the dtype itself. `half_bits`
    is the text of the bits of an f16 that is held in an f32, where they are at hand.
    """

    text: str
    rank: int
    depth: int = 0
    is_ring: bool = False
    half_bits: str = ""


class CModule:
    """What all kernels of one file share. `extensions` are those that the device offers."""

    def __init__(self, spelling: Spelling, extensions: Collection[str]) -> None:
        self.say, self.tables = spelling.macros, spelling.tables
        self.prelude = Declarations()
        self.functions: list[Chunk] = []
        self.enabled_extensions: dict[str, None] = {}
        self._offered = frozenset(extensions)
        self.has_half = self.tables["extension"]["f16"] in self._offered
        reserved = [self.tables["reserved_in_c"], self.tables["reserved"]]
        self._reserved = frozenset(
            word for table in reserved for word in table["words"].split()
        )
        self._patterns = re.compile(
            "|".join(p for table in reserved for p in table["patterns"])
        )

    def offers(self, feature: str) -> bool:
        """Whether the device has the extension that the table `extension` calls `feature`."""
        return self.tables["extension"][feature] in self._offered

    def use(self, feature: str, what: str) -> None:
        """Says that the extension is in use; Unsupported where the device does not have it."""
        extension = self.tables["extension"][feature]
        if extension not in self._offered:
            raise Unsupported(
                f"{what} on this device",
                why=f"it does not offer {extension}",
                remedy="use another dtype, or another device",
            )
        if feature in self.tables["pragmas"]:
            self.enabled_extensions[extension] = None

    def value_dtype(self, dtype: DType) -> DType:
        """What values of `dtype` are held in: a vector of bools in one of bytes, 0 or -1; an f16
        in an f32 where the device has no f16 (Note [f16 in f32] of c_half)."""
        if dtype.is_bool and dtype.lanes > 1:
            return DType("int", 8, dtype.lanes)
        if dtype.element == _F16 and not self.has_half:
            return F32.with_lanes(dtype.lanes)
        return dtype

    def memory_dtype(self, dtype: DType) -> DType:
        """What values of `dtype` lie in memory as: a bool as a byte."""
        if dtype.is_bool:
            return _BYTE.with_lanes(dtype.lanes)
        if dtype.element == _F16 and not self.has_half:
            return _BITS_OF_HALF.with_lanes(dtype.lanes)
        return dtype

    def type_of(self, dtype: DType) -> str:
        """The type of a value."""
        return self._spell(self.value_dtype(dtype))

    def memory_type_of(self, dtype: DType) -> str:
        """The type of the same value in memory."""
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
        spelled: str = self.tables["type"][element]
        if dtype.lanes == 1:
            return spelled
        if dtype.lanes not in self.tables["lanes"]:
            raise CompilerBug(
                f"a vector of {dtype.lanes} lanes reaches the printer of C",
                why=f"its vectors have {', '.join(map(str, self.tables['lanes']))} lanes",
            )
        vector: str = self.say.vector(spelled, dtype.lanes)
        return vector

    def literal(self, value: float, dtype: DType) -> CExpr:
        """A constant of a scalar dtype."""
        text, is_atom = spell_literal(
            self.say, self.tables, value, self.value_dtype(dtype)
        )
        return CExpr(text, self.tables["rank"]["atom" if is_atom else "unary"])

    def harmless(self, name: str) -> str:
        """`name` as an identifier that means nothing in the language."""
        wish = to_identifier(name).replace(".", "_")
        return f"{wish}_" if self.is_reserved(wish) else wish

    def is_reserved(self, name: str) -> bool:
        """Whether `name` means something in the language, or may mean something."""
        return name in self._reserved or self._patterns.fullmatch(name) is not None


class CFunction(Chunks):
    """One kernel while it is printed. `table` has for each expression class what prints it."""

    def __init__(
        self,
        module: CModule,
        table: Mapping[type[Any], Callable[[CFunction, Any], CExpr]],
    ) -> None:
        super().__init__()
        self.module, self.say, self._table = module, module.say, table
        self.names: dict[Var | Buffer, str] = {}
        self.declarations: list[str] = []  # lines for the top of the kernel
        self.shared_params: list[str] = []
        self.group_size: list[int] | None = None  # where the extents are constants
        self._ranks: dict[str, int] = module.tables["rank"]
        self._unique = UniqueNames()
        self._scopes: list[list[str]] = [[]]

    # Text.

    def emit(self, text: str) -> None:
        """Adds whole lines, indented as deeply as the bodies are nested."""
        super().emit(textwrap.indent(text, _INDENT * (len(self._scopes) - 1)))

    @property
    def is_inside_block(self) -> bool:
        """Return True inside a loop or a branch of the kernel."""
        # The first scope holds the parameters, the second the body.
        return len(self._scopes) > 2

    def declare_above(self, text: str) -> None:
        """Adds lines to the top of the kernel."""
        self.declarations.append(textwrap.indent(text, _INDENT))

    def capture_block(self, print_body: Callable[[], None]) -> list[Chunk]:
        """What `print_body` emits as a block of its own, whose names end with it."""
        self._scopes.append([])
        body = self.capture(print_body)
        for name in self._scopes.pop():
            self._unique.release(name)
        return body

    # Operands.

    def value(self, expr: Expr) -> CExpr:
        """The value of `expr`, in the type of its dtype."""
        operand = self._table[type(expr)](self, expr)
        return self.shallow(operand, expr.dtype)

    def shallow(self, operand: CExpr, dtype: DType) -> CExpr:
        """`operand` itself, or under a name where it is nested too deeply."""
        return operand if operand.depth < DEEPEST else self.bind(operand, dtype)

    def atom(self, operand: CExpr, dtype: DType) -> CExpr:
        """`operand` itself where it may be written several times, else under a name."""
        return operand if operand.depth == 0 else self.bind(operand, dtype)

    def bind(self, operand: CExpr, dtype: DType) -> CExpr:
        """A name for a value of `dtype`, which is computed here."""
        name = self.take_name("t")
        kept = ring_of(dtype) if operand.is_ring else dtype
        self.emit(self.say.define(self.module.type_of(kept), name, operand.text))
        return replace(self.named(name), is_ring=operand.is_ring)

    def fit(self, operand: CExpr, rank: int) -> str:
        """The text, in parentheses where it binds less tightly than `rank`."""
        if operand.rank >= rank:
            return operand.text
        text: str = self.say.parenthesised(operand.text)
        return text

    def infix(
        self, operator: str, a: CExpr, b: CExpr, *, is_ring: bool = False
    ) -> CExpr:
        """The operator that the table calls `operator`, between two operands."""
        entry = self.module.tables["operator"][operator]
        left, right = self.fit(a, entry["left"]), self.fit(b, entry["right"])
        text = self.say.infix(left, entry["symbol"], right)
        return CExpr(text, entry["rank"], max(a.depth, b.depth) + 1, is_ring)

    def call(self, function: str, *arguments: CExpr) -> CExpr:
        """A call of a function by its name."""
        text = self.say.call(function, [argument.text for argument in arguments])
        return self.compound(text, *arguments)

    def compound(self, text: str, *parts: CExpr, is_ring: bool = False) -> CExpr:
        """A text that needs no parentheses, made of `parts`."""
        depth = max((part.depth for part in parts), default=0) + 1
        return CExpr(text, self._ranks["atom"], depth, is_ring)

    def cast(self, operand: CExpr, dtype: DType, *, is_ring: bool = False) -> CExpr:
        """A scalar converted by C's own rules."""
        inner = self.fit(operand, self._ranks["unary"])
        text = self.say.cast(self.module.type_of(dtype), inner)
        return CExpr(text, self._ranks["unary"], operand.depth + 1, is_ring)

    def choice(self, condition: CExpr, yes: CExpr, no: CExpr) -> CExpr:
        """One of two values by a single condition; the other one is not evaluated."""
        texts = [
            self.fit(part, self._ranks["choice"] + 1) for part in (condition, yes, no)
        ]
        depth = max(condition.depth, yes.depth, no.depth) + 1
        return CExpr(self.say.choose(*texts), self._ranks["choice"], depth)

    def narrowed(self, operand: CExpr, dtype: DType) -> CExpr:
        """C widens single small integers; an overloaded function must be told their type again."""
        is_widened = dtype.is_int and ring_of(dtype).bits > dtype.bits
        return self.cast(operand, dtype) if is_widened else operand

    # Vectors.

    def vector(self, dtype: DType, lanes: list[CExpr]) -> CExpr:
        """A vector of these lanes, or of one that stands for all."""
        text = self.say.vector_of(
            self.module.type_of(dtype), [lane.text for lane in lanes]
        )
        return self.compound(text, *lanes)

    def splat(self, value: float, dtype: DType) -> CExpr:
        """A constant in each lane."""
        # C has no literals of small integers, and converts others to the type of the lanes.
        is_small = dtype.is_int and dtype.bits < I32.bits
        return self.vector(
            dtype, [self.module.literal(value, I32 if is_small else dtype.element)]
        )

    def lane(self, vector: CExpr, number: int) -> CExpr:
        """One lane of an operand that is an atom."""
        atom = self._ranks["atom"]
        text = self.say.lane(
            self.fit(vector, atom), self.module.tables["lane_names"][number]
        )
        return CExpr(text, atom)

    def lane_by_lane(
        self, dtype: DType, vectors: list[CExpr], apply: Callable[..., CExpr]
    ) -> CExpr:
        """The vector of `apply` on the lanes of `vectors`, which are atoms."""
        lanes = range(dtype.lanes)
        return self.vector(
            dtype, [apply(*(self.lane(v, k) for v in vectors)) for k in lanes]
        )

    # Names.

    def name(self, item: Var | Buffer) -> str:
        """A name for a variable or buffer that is bound here."""
        self.names[item] = self.take_name(self.module.harmless(item.name))
        return self.names[item]

    def name_of_kernel(self, item: Buffer) -> str:
        """A name for a buffer that is bound in the whole kernel, wherever it is used."""
        self.names[item] = self._unique.take(self.module.harmless(item.name))
        return self.names[item]

    def name_of(self, item: Var | Buffer) -> CExpr:
        """The name of what has been bound."""
        if item not in self.names:
            raise CompilerBug(f"{item.name} is used where it is not bound")
        return self.named(self.names[item])

    def named(self, name: str) -> CExpr:
        """What has the name `name`."""
        return CExpr(name, self._ranks["atom"])

    def take_name(self, wish: str) -> str:
        """`wish`, with a number behind where it is taken; until the end of the block."""
        name = self._unique.take(wish)
        self._scopes[-1].append(name)
        return name

    def drop_name(self, name: str) -> None:
        """Gives back a name that was not needed."""
        self._scopes[-1].remove(name)
        self._unique.release(name)


def ring_of(dtype: DType) -> DType:
    """The unsigned type in which integers of `dtype` are added and multiplied: C makes single
    small integers an int, whose overflow is undefined."""
    return DType(
        "uint", dtype.bits if dtype.lanes > 1 else max(32, dtype.bits), dtype.lanes
    )
