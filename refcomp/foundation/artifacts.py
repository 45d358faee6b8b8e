"""What one room hands to the next: Source (text), Binary (bytes) and Signature (arguments).

All are plain values without behaviour of their own beyond reading and writing JSON, so that the
module file, the cache and every back end speak of the same thing. Nothing here knows the IR: a
dimension that depends on symbols is a small tree of integers, names and operator names.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, as_dtype
from refcomp.foundation.integers import OPERATORS, wrap

# An integer, a symbol's name, or (operator, left, right) with an operator of `_DIM_OPERATORS`. In a
# Condition there are those of `_TEST_OPERATORS`, too: tests, whose results are 0 and 1. The name of
# an integer type, such as `i64`, converts the left operand to it; the right operand is 0.
Dim = int | str | tuple[str, Any, Any]


def _conversion(dtype: DType) -> Callable[[int, int], int]:
    """Return the conversion to `dtype`, which keeps the low bits."""
    return lambda a, _: wrap(a, dtype)


_DIM_OPERATORS = {
    name: OPERATORS[name]
    for name in ("add", "sub", "mul", "floordiv", "floormod", "min", "max")
}
_TEST_OPERATORS = {
    name: OPERATORS[name] for name in ("lt", "le", "eq", "ne", "and", "or")
}
_CONVERSIONS: dict[str, Callable[[int, int], int]] = {
    str(dtype): _conversion(dtype) for dtype in SCALAR_DTYPES if dtype.is_int
}
_OPERATORS = _DIM_OPERATORS | _TEST_OPERATORS | _CONVERSIONS
_DIM_SPELLING = {
    **{"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "floormod": "%"},
    **{"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "and": "and", "or": "or"},
}
_PRECEDENCE = {
    **{"or": 1, "and": 2, "lt": 3, "le": 3, "eq": 3, "ne": 3},
    **{"add": 4, "sub": 4, "mul": 5, "floordiv": 5, "floormod": 5},
}


def evaluate_dim(dim: Dim, symbols: Mapping[str, int]) -> int:
    """The value of `dim`; division by zero is 0, as in the loop IR. KeyError: unknown symbol."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, str):
        return symbols[dim]
    operator, left, right = dim
    return int(
        _OPERATORS[operator](evaluate_dim(left, symbols), evaluate_dim(right, symbols))
    )


def names_in_dim(dim: Dim) -> Iterator[str]:
    """Yield the names of the symbols in `dim`, with repetitions."""
    if isinstance(dim, str):
        yield dim
    elif isinstance(dim, tuple):
        yield from names_in_dim(dim[1])
        yield from names_in_dim(dim[2])


def dim_to_text(dim: Dim) -> str:
    """`dim` as a reader would write it: `(n + 1) // 4`."""
    if not isinstance(dim, tuple):
        return str(dim)
    operator, left, right = dim
    if operator == "add" and isinstance(right, int) and right < 0:
        return f"({dim_to_text(left)} - {-right})"
    if operator in _CONVERSIONS:
        return f"{operator}({dim_to_plain_text(left)})"
    if operator in _DIM_SPELLING:
        return f"({dim_to_text(left)} {_DIM_SPELLING[operator]} {dim_to_text(right)})"
    return f"{operator}({dim_to_plain_text(left)}, {dim_to_plain_text(right)})"


def dim_to_plain_text(dim: Dim, binding: int = 0) -> str:
    """`dim` with the parentheses that an operator of precedence `binding` around it needs."""
    if not isinstance(dim, tuple) or dim[0] not in _DIM_SPELLING:
        return dim_to_text(dim)
    operator, left, right = dim
    sign, own = _DIM_SPELLING[operator], _PRECEDENCE[operator]
    if operator == "add" and isinstance(right, int) and right < 0:
        sign, right = "-", -right
    is_associative = operator in ("add", "and", "or")
    first = dim_to_plain_text(
        left, own + (operator in _TEST_OPERATORS and not is_associative)
    )
    text = f"{first} {sign} {dim_to_plain_text(right, own + (not is_associative))}"
    return f"({text})" if own < binding else text


def _dim_from_json(
    value: Any, operators: Container[str] = _DIM_OPERATORS.keys()
) -> Dim:
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    operator, left, right = value
    if operator not in operators:
        raise ValueError(f"unknown operator {operator!r} in a dimension")
    return (operator, _dim_from_json(left, operators), _dim_from_json(right, operators))


@dataclass(frozen=True, slots=True)
class TensorParam:
    """A tensor argument: compact row-major memory of `shape`, elements of `dtype`."""

    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    is_output: bool = False

    def __str__(self) -> str:
        dims = ", ".join(dim_to_text(dim) for dim in self.shape)
        return f"{self.name}: {self.dtype}[{dims}]" + (
            " (output)" if self.is_output else ""
        )


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A scalar argument passed by value."""

    name: str
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the sizes and scalars of a call, and the access or extent that needs it.

    Attributes:
        test: 0 if the condition does not hold.
        text: the access that the condition is for, or what has the extent.
        by: the stage or statement that needs it: `compute C reads`.
        line: the user's source line, as file:line.
        buffer: the parameter that is accessed; '' if the condition is about an extent.
        dim: the dimension that is accessed.
        advice: how to access it under a condition, where that is not plain.
    """

    test: Dim
    text: str = field(default="", compare=False)
    by: str = field(default="", compare=False)
    line: str = field(default="", compare=False)
    buffer: str = field(default="", compare=False)
    dim: int = field(default=0, compare=False)
    advice: str = field(default="", compare=False)

    def __str__(self) -> str:
        return dim_to_plain_text(self.test)

    def to_json(self) -> dict[str, Any]:
        """A JSON value, from which `signature_from_json` makes the Condition again."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class CheckedAccess:
    """One dimension of an access to a buffer that compiled code checks when it runs.

    Attributes:
        action: what the program does there: `reads`, `writes`, `updates` or `passes`.
        buffer: the name of the buffer.
        dimension: the dimension of the buffer, from 0.
        extent: the extent of the dimension, as loop-IR text.
        index: the index, as loop-IR text.
        statement: the first line of the statement, as loop-IR text.
        origin: the stage, the axis and the user's line that the statement comes from, if known.
    """

    action: str
    buffer: str
    dimension: int
    extent: str
    index: str
    statement: str
    origin: str = ""

    def to_text(self) -> str:
        """Return one line for each field, which `checked_access_from_text` reads back."""
        return "\n".join(str(part) for part in astuple(self))


ACCESS_ACTIONS = ("reads", "writes", "updates", "passes")
_DIMENSIONS = frozenset(map(str, range(64)))
# Words of i64 for each checked access: the least and the greatest wrong index, and the extent.
STATUS_WORDS = 3


def checked_access_from_text(text: str) -> CheckedAccess:
    """Return the CheckedAccess that `CheckedAccess.to_text` wrote. ValueError when malformed."""
    lines = text.split("\n")
    is_whole = len(lines) == len(fields(CheckedAccess))
    if not (is_whole and lines[0] in ACCESS_ACTIONS and lines[2] in _DIMENSIONS):
        raise ValueError(f"{text[:60]!r} describes no access")
    action, buffer, dimension, *rest = lines
    return CheckedAccess(action, buffer, int(dimension), *rest)


@dataclass(frozen=True, slots=True)
class Signature:
    """How a compiled function is called.

    `params` are the arguments a user passes, in order. `symbols` are the shape variables, in the
    order in which the machine code takes them, as i64, after the params; the caller never
    passes them: they are solved from the shapes. `requires` holds at every call that is let in.
    With `checks`, the machine code takes one more array after the params, which the caller never
    passes either: the status of these accesses (`refcomp.runtime.arrays.access_status`).
    """

    name: str
    params: tuple[TensorParam | ScalarParam, ...]
    symbols: tuple[str, ...] = ()
    requires: tuple[Condition, ...] = ()
    checks: tuple[CheckedAccess, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})"

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `signature_from_json` reads back."""
        params = [
            {"name": p.name, "dtype": str(p.dtype)}
            | (
                {"shape": list(p.shape), "is_output": p.is_output}
                if isinstance(p, TensorParam)
                else {}
            )
            for p in self.params
        ]
        value = {"name": self.name, "params": params, "symbols": list(self.symbols)}
        if self.requires:
            value["requires"] = [condition.to_json() for condition in self.requires]
        if self.checks:
            value["checks"] = [check.to_text() for check in self.checks]
        return value


def signature_from_json(value: Mapping[str, Any]) -> Signature:
    """The Signature that `Signature.to_json` wrote; ValueError or KeyError when malformed."""
    params: list[TensorParam | ScalarParam] = []
    for item in value["params"]:
        name, dtype = _text(item["name"]), as_dtype(_text(item["dtype"]))
        if "shape" in item:
            shape = tuple(_dim_from_json(dim) for dim in item["shape"])
            params.append(TensorParam(name, dtype, shape, _flag(item["is_output"])))
        else:
            params.append(ScalarParam(name, dtype))
    symbols = tuple(map(_text, value["symbols"]))
    requires = tuple(map(_condition_from_json, value.get("requires", ())))
    checks = tuple(
        checked_access_from_text(_text(item)) for item in value.get("checks", ())
    )
    return Signature(_text(value["name"]), tuple(params), symbols, requires, checks)


def _condition_from_json(value: Mapping[str, Any]) -> Condition:
    dim = value["dim"]
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise ValueError(f"the number of a dimension is expected, not {dim!r}")
    texts = {name: _text(value[name]) for name in ("text", "by", "line", "buffer")}
    advice = _text(value.get("advice", ""))
    test = _dim_from_json(value["test"], _OPERATORS.keys())
    return Condition(test, dim=dim, advice=advice, **texts)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text is expected, not {value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"true or false is expected, not {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """An array that machine code hands to a registered function: `access` is read, write or
    update, `dtype` what the function sees."""

    access: str
    dtype: DType
    rank: int


@dataclass(frozen=True, slots=True)
class PackedCall:
    """What machine code tells of a call of the registered function `name`, as a text of its own.

    Its arguments come as 64-bit slots: for an array its address and its extents, for a number of
    one of the dtypes `SLOT_DTYPES` its bits.
    """

    name: str
    args: tuple[BufferArgument | DType, ...]

    def to_text(self) -> str:
        """A text that `packed_call_from_text` reads back: `my.sum|read f32 2|write f32 1|i64`."""
        parts = (
            f"{arg.access} {arg.dtype} {arg.rank}"
            if isinstance(arg, BufferArgument)
            else str(arg)
            for arg in self.args
        )
        return "|".join([self.name, *parts])


SLOT_DTYPES = {
    "int": DType("int", 64),
    "uint": DType("uint", 64),
    "float": DType("float", 64),
    "bool": DType("bool", 1),
}


def packed_call_from_text(text: str) -> PackedCall:
    """The PackedCall that `PackedCall.to_text` wrote."""
    name, *parts = text.split("|")
    return PackedCall(name, tuple(_argument_from_text(part) for part in parts))


def _argument_from_text(text: str) -> BufferArgument | DType:
    access, *of_array = text.split()
    if not of_array:
        return as_dtype(access)
    dtype, rank = of_array
    return BufferArgument(access, as_dtype(dtype), int(rank))


@dataclass(frozen=True, slots=True)
class Source:
    """Text in a language (`llvm`, `cuda`, `opencl`), ready for a toolchain.

    `line_map[k]` describes the loop-IR statement that line k + 1 of `text` came from ('' where
    there is none). `requires` names what the linker must bring: `libm`, `libmvec`, `libgomp`,
    `ocml`. `entries` are the functions that must stay: all, where none is named.
    """

    text: str
    language: str
    line_map: Sequence[str] = ()
    requires: frozenset[str] = field(default_factory=frozenset)
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes in a format: `so` (shared object), `o`, `s` (assembly text), `ll` (LLVM IR text)."""

    data: bytes
    format: str
