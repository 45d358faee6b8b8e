"""Products of matrices (MFMA) by translated code, for all lanes of a wave at once.

One function serves all instructions of a shape, and runs those that follow one another. It is given
where their registers lie. Sums of f32
are added one product after the other, those of narrower floats in f64, as the interpreter does.
Other types, modifiers and overlapping operands are left to the interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.generations.generation import Generation
from refcomp.emulator.instructions.matrix.layouts import Product, product_of
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import vector_index
from refcomp.emulator.translation.names import Lines
from refcomp.emulator.translation.printer import field_lines
from refcomp.emulator.translation.texts import load_texts

_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
_ROWS = (16, 32)
# Further parameters of a function: the number of consecutive products, and an address. At the
# address are the numbers of the first registers of A, B, C and D of each product.
_PARAMETERS = ", i64 %products, ptr %numbers"


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """The shape of a product, on which its function depends.

    Attributes:
        product: shape and types.
        has_sums: C is in registers; otherwise it is 0.
    """

    product: Product
    has_sums: bool


@dataclass(frozen=True, slots=True)
class MatrixStep:
    """A product of matrices: the shape, and the first vector registers of A, B, C and D."""

    shape: MatrixShape
    a: int
    b: int
    c: int  # that of D if C is 0
    d: int

    @property
    def inputs(self) -> frozenset[int]:
        """The numbers of the registers that are read, as `Registers.dirty` has them."""
        product = self.shape.product
        words = {self.a: product.factor_words, self.b: product.factor_words}
        found = {first + n for first, count in words.items() for n in range(count)}
        if self.shape.has_sums:
            found.update(range(self.c, self.c + product.sums))
        return frozenset(FIRST_VECTOR + n for n in found)

    @property
    def outputs(self) -> frozenset[int]:
        """The numbers of the registers that are written."""
        first = FIRST_VECTOR + self.d
        return frozenset(range(first, first + self.shape.product.sums))


def decode_matrix(instruction: Instruction, of: Generation) -> MatrixStep | None:
    """Return the step of a product; None if the interpreter must run the instruction."""
    product = product_of(instruction.mnemonic, has_denormals=of.has_matrix_denormals)
    if product is None or instruction.modifiers or not product.has_denormals:
        return None
    if product.sum != "f32" or product.rows not in _ROWS:
        return None
    if not set(product.elements) <= _BYTES.keys():
        return None
    result, a, b, c = instruction.operands
    if c.file == "c" and c.text != "0":
        return None
    first = vector_index(result)
    has_sums = c.file != "c"
    step = MatrixStep(
        MatrixShape(product, has_sums),
        vector_index(a),
        vector_index(b),
        vector_index(c) if has_sums else first,
        first,
    )
    factors = MatrixStep(MatrixShape(product, False), step.a, step.b, first, first)
    overlaps = not factors.inputs.isdisjoint(step.outputs)
    is_shifted = step.c != step.d and abs(step.c - step.d) < product.sums
    return None if overlaps or is_shifted else step


def print_matrix(shape: MatrixShape, name: str, width: int) -> str:
    """Return the text of the function `name` for a shape, `width` columns at once."""
    printer = _MatrixPrinter(shape, width)
    frame = load_texts(width).frame["module"]
    begin = frame["begin"].format(
        name=name,
        more=_PARAMETERS,
        fields=field_lines(width),
        scratch=64,
        windows=2,
        window_bytes=16,
        wave_bytes=4 * 64,
    )
    return "".join([begin, printer.body(), frame["end"].format()])


class _MatrixPrinter:
    """Prints the body of a function: the product of one wave."""

    def __init__(self, shape: MatrixShape, width: int) -> None:
        self._shape = shape
        self._product = shape.product
        self._element = shape.product.elements.a
        self._width = width
        self._lines = Lines(load_texts(width).frame, "m")
        self._places = shape.product.sum_places()

    def body(self) -> str:
        self._lines.put("matrices", "product_begin")
        for block in range(self._product.blocks):
            for column in range(0, self._product.rows, self._width):
                self._columns(block, column)
        self._lines.put("matrices", "product_end")
        return self._lines.text()

    def _columns(self, block: int, column: int) -> None:
        """Print the sums of some columns of a block, in all rows."""
        depth = range(self._product.depth)
        b = [self._factor("b", block, column, k) for k in depth]
        for row in range(self._product.rows):
            a = [self._factor("a", block, row, k) for k in depth]
            self._row(block, row, column, list(zip(a, b, strict=True)))

    def _row(
        self, block: int, row: int, column: int, factors: list[tuple[str, str]]
    ) -> None:
        put = self._lines.put
        where = block, row, column
        lane = int(self._places.lane[where])
        register = int(self._places.number[where])
        old = self._place("%pc", register, 4 * lane)
        old = put("matrices", "sums" if self._shape.has_sums else "zeros", old)
        total = old
        if self._element == "f32":
            for a, b in factors:
                total = put("matrices", "add_f32", a=a, b=b, sum=total)
        else:
            (a, b), *rest = factors
            total = put("matrices", "first_f64", a=a, b=b)
            for a, b in rest:
                total = put("matrices", "add_f64", a=a, b=b, sum=total)
            total = put("matrices", "round", old=old, sum=total)
        place = self._place("%pd", register, 4 * lane)
        put("matrices", "keep", place, value=total)

    def _factor(self, letter: str, block: int, row: int, k: int) -> str:
        """Return an element of A in all lanes, or a row of B from column `row` on."""
        product = self._product
        size = _BYTES[self._element]
        place = k % product.each * size  # bytes of the lane's registers before it
        lane = product.rows * (block + product.blocks * (k // product.each)) + row
        offset = 4 * lane
        if letter == "a":
            offset += place % 4
        t = self._place(f"%p{letter}", place // 4, offset)
        name = f"{letter}_{self._element}"
        return self._lines.put("matrices", name, t, shift=8 * (place % 4))

    def _place(self, base: str, register: int, offset: int) -> str:
        t = self._lines.fresh()
        holes = {"base": base, "register": register, "offset": offset}
        self._lines.put("matrices", "place", t, **holes)
        return t
