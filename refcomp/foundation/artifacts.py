"""The artifacts that rooms pass on: Source (text), Binary (bytes) and Signature (arguments).

All are plain values that can be written as JSON or text, and read back. The module file, the cache
and every back end share them. Nothing here depends on the IR: a dimension with symbols is a small
tree of integers, names and operators.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import astuple, field, fields
from typing import Any
from urllib.parse import quote, unquote

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, as_dtype
from refcomp.foundation.integers import OPERATORS, wrap
from refcomp.foundation.records import record

# An extent: an integer, the name of a symbol, or (operator, left, right).
# The shapes of parameters use the operators of `_DIM_OPERATORS`. A Condition also uses
# `_TEST_OPERATORS`, whose results are 0 and 1, and `_CONVERSIONS`: the name of an integer type,
# such as `i64`, converts the left operand to this type, and the right operand is 0.
Dim = int | str | tuple[str, "Dim", "Dim"]


def _conversion(dtype: DType) -> Callable[[int, int], int]:
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
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "floormod": "%",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
    "and": "and",
    "or": "or",
}
_PRECEDENCE = {
    "or": 1,
    "and": 2,
    "lt": 3,
    "le": 3,
    "eq": 3,
    "ne": 3,
    "add": 4,
    "sub": 4,
    "mul": 5,
    "floordiv": 5,
    "floormod": 5,
}


def evaluate_dim(dim: Dim, symbols: Mapping[str, int]) -> int:
    """Return the value of `dim`; a division by 0 is 0, as in loop IR.

    Raises KeyError for a symbol that `symbols` does not have.
    """
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
    """Return `dim` with parentheses around each operation: `((n + 1) // 4)`."""
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
    """Return `dim` with necessary parentheses only: `(n + 1) // 4`.

    `binding` is the precedence of the operator around `dim`, 0 if there is none.
    """
    if not isinstance(dim, tuple) or dim[0] not in _DIM_SPELLING:
        return dim_to_text(dim)
    operator, left, right = dim
    sign = _DIM_SPELLING[operator]
    precedence = _PRECEDENCE[operator]
    if operator == "add" and isinstance(right, int) and right < 0:
        sign = "-"
        right = -right
    is_associative = operator in ("add", "and", "or")
    # `a - b - c` is (a - b) - c, but a chain of comparisons needs parentheses on both sides.
    is_comparison = operator in _TEST_OPERATORS and not is_associative
    first = dim_to_plain_text(left, precedence + is_comparison)
    second = dim_to_plain_text(right, precedence + (not is_associative))
    text = f"{first} {sign} {second}"
    return f"({text})" if precedence < binding else text


# A JSON object from a file. Each value is checked where it is read.
JsonObject = Mapping[str, Any]


def _dim_from_json(
    value: object, operators: Container[str] = _DIM_OPERATORS.keys()
) -> Dim:
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    if not isinstance(value, list | tuple):
        raise TypeError(f"a dimension is expected, not {value!r}")
    operator, left, right = value
    if operator not in operators:
        raise ValueError(f"unknown operator {operator!r} in a dimension")
    return (operator, _dim_from_json(left, operators), _dim_from_json(right, operators))


@record
class TensorParam:
    """A tensor argument: compact row-major memory of `shape`, elements of `dtype`."""

    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    is_output: bool = False

    def __str__(self) -> str:
        dims = ", ".join(dim_to_text(dim) for dim in self.shape)
        suffix = " (output)" if self.is_output else ""
        return f"{self.name}: {self.dtype}[{dims}]{suffix}"


@record
class ScalarParam:
    """A scalar argument passed by value."""

    name: str
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}"


@record
class PointCondition:
    """A condition that must hold at all values of some axes, as loop-IR text."""

    text: str  # such as `for i in range(m) i % 8 < n`
    # A function without parameters other than the scalars of `names`, which requires it.
    func: str
    names: tuple[str, ...]  # the symbols and scalars of the signature, in order

    def __str__(self) -> str:
        return self.text


@record
class Condition:
    """A condition on the sizes and scalars of a call, and the access or extent that needs it."""

    test: Dim  # 0 if the condition does not hold
    # The access that needs the condition, or whatever has the extent.
    text: str = field(default="", compare=False)
    # The stage or statement that accesses: `compute C reads`.
    by: str = field(default="", compare=False)
    line: str = field(default="", compare=False)  # of the user's program, as file:line
    # The parameter that is accessed; '' if the condition is about an extent.
    buffer: str = field(default="", compare=False)
    dim: int = field(default=0, compare=False)  # the dimension that is accessed, from 0
    # How to guard the access in the user's program, if that is not obvious.
    advice: str = field(default="", compare=False)
    # What a failed assert says; '' if an access or an extent is the reason.
    failure: str = field(default="", compare=False)
    points: PointCondition | None = None  # what must hold besides `test`

    def __str__(self) -> str:
        return str(self.points or dim_to_plain_text(self.test))

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols and scalars that the condition depends on, each once."""
        own = () if self.points is None else self.points.names
        return tuple(dict.fromkeys((*names_in_dim(self.test), *own)))

    def to_json(self) -> dict[str, object]:
        """Return a JSON value that `signature_from_json` reads back."""
        value = {one.name: getattr(self, one.name) for one in fields(self)}
        points = self.points
        if points is None:
            del value["points"]
        else:
            value["points"] = {
                "text": points.text,
                "func": points.func,
                "names": list(points.names),
            }
        return value


@record
class CheckedAccess:
    """One dimension of a buffer access whose index compiled code checks at run time."""

    action: str  # one of `ACCESS_ACTIONS`
    buffer: str  # name
    dimension: int  # from 0
    extent: str  # of the dimension, as loop-IR text
    index: str  # as loop-IR text
    statement: str  # its first line, as loop-IR text
    origin: str = ""  # stage, axis and user's line of the statement, if known

    def to_text(self) -> str:
        """Return one line for each field, which `checked_access_from_text` reads back."""
        return "\n".join(str(part) for part in astuple(self))


ACCESS_ACTIONS = ("reads", "writes", "updates", "passes")
_DIMENSIONS = frozenset(map(str, range(64)))
# i64 words for each checked access: the smallest and the largest wrong index, and the extent.
STATUS_WORDS = 3

# The machine code that makes joined calls, in modules of several functions.
CALL_ALL = "refcomp.call_all"


def caller_symbol(arrays: int, symbols: int) -> str:
    """Return the name of the machine code that calls functions of one type for `CALL_ALL`."""
    return f"refcomp.call.{arrays}.{symbols}"


def checked_access_from_text(text: str) -> CheckedAccess:
    """Return the access that `CheckedAccess.to_text` wrote. ValueError if malformed."""
    lines = text.split("\n")
    is_whole = len(lines) == len(fields(CheckedAccess))
    if not (is_whole and lines[0] in ACCESS_ACTIONS and lines[2] in _DIMENSIONS):
        raise ValueError(f"{text[:60]!r} does not describe an access")
    action, buffer, dimension, *rest = lines
    return CheckedAccess(action, buffer, int(dimension), *rest)


@record
class Signature:
    """The calling convention of a compiled function.

    The machine code takes the params, the status array if there are `checks`, and the symbols.
    A caller passes the params only.
    """

    name: str
    params: tuple[TensorParam | ScalarParam, ...]
    # The shape variables, which the machine code takes as i64. A call solves them from the shapes
    # of its arrays.
    symbols: tuple[str, ...] = ()
    requires: tuple[Condition, ...] = ()  # a call is refused unless all of them hold
    # Accesses whose status the machine code reports in an array, `STATUS_WORDS` for each
    # (see `refcomp.runtime.arrays.access_status`).
    checks: tuple[CheckedAccess, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})"

    def to_json(self) -> dict[str, object]:
        """Return a JSON value that `signature_from_json` reads back."""
        params: list[dict[str, object]] = []
        for param in self.params:
            item: dict[str, object] = {"name": param.name, "dtype": str(param.dtype)}
            if isinstance(param, TensorParam):
                item["shape"] = list(param.shape)
                item["is_output"] = param.is_output
            params.append(item)
        value: dict[str, object] = {
            "name": self.name,
            "params": params,
            "symbols": list(self.symbols),
        }
        if self.requires:
            value["requires"] = [condition.to_json() for condition in self.requires]
        if self.checks:
            value["checks"] = [check.to_text() for check in self.checks]
        return value


def signature_from_json(value: JsonObject) -> Signature:
    """Return the Signature that `Signature.to_json` wrote.

    Raises ValueError, TypeError or KeyError if `value` is malformed.
    """
    params: list[TensorParam | ScalarParam] = []
    for item in value["params"]:
        name = _text(item["name"])
        dtype = as_dtype(_text(item["dtype"]))
        if "shape" not in item:
            params.append(ScalarParam(name, dtype))
            continue
        shape = tuple(_dim_from_json(dim) for dim in item["shape"])
        is_output = item["is_output"]
        if not isinstance(is_output, bool):
            raise ValueError(f"true or false is expected, not {is_output!r}")
        params.append(TensorParam(name, dtype, shape, is_output))
    checks = (_text(check) for check in value.get("checks", ()))
    return Signature(
        name=_text(value["name"]),
        params=tuple(params),
        symbols=tuple(map(_text, value["symbols"])),
        requires=tuple(map(_condition_from_json, value.get("requires", ()))),
        checks=tuple(map(checked_access_from_text, checks)),
    )


def _condition_from_json(value: JsonObject) -> Condition:
    dim = value["dim"]
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise ValueError(f"the number of a dimension is expected, not {dim!r}")
    points: PointCondition | None = None
    if "points" in value:
        found = value["points"]
        names = tuple(map(_text, found["names"]))
        points = PointCondition(_text(found["text"]), _text(found["func"]), names)
    return Condition(
        test=_dim_from_json(value["test"], _OPERATORS.keys()),
        text=_text(value["text"]),
        by=_text(value["by"]),
        line=_text(value["line"]),
        buffer=_text(value["buffer"]),
        dim=dim,
        advice=_text(value.get("advice", "")),
        failure=_text(value.get("failure", "")),
        points=points,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text is expected, not {value!r}")
    return value


@record
class BufferArgument:
    """An array that machine code passes to a registered function."""

    access: str  # by the function: `read`, `write` or `update`
    dtype: DType  # of the array that the function receives
    rank: int

    def __str__(self) -> str:
        return f"{self.access} {self.dtype} {self.rank}"


@record
class PackedCall:
    """A call of a registered function, as the machine code describes it by a text.

    The machine code passes the arguments in 64-bit slots. An array takes one slot for its address
    and one for each extent. A number takes one slot, as a value of a dtype in `SLOT_DTYPES`. A text
    takes none, since it is part of the description. A value that is used has one more slot.
    """

    name: str  # under which the function is registered
    args: tuple[BufferArgument | DType | str, ...]  # memory, numbers, texts
    result: DType | None = None  # of the value; None if it is not used
    traces: bool = False  # None as the value means the last argument

    def to_text(self) -> str:
        """Return a text that `packed_call_from_text` reads back.

        For example: `my.sum|read f32 2|write f32 1|i64|text:a%20b|returns f32`. It is of printable
        ASCII, without quotation marks and backslashes.
        """
        parts = [
            f"{_TEXT}{quote(arg, safe='')}" if isinstance(arg, str) else str(arg)
            for arg in self.args
        ]
        if self.result is not None:
            parts.append(f"{'traces' if self.traces else 'returns'} {self.result}")
        return "|".join([self.name, *parts])


_TEXT = "text:"
# Kind of a number -> the dtype by which a slot carries it.
SLOT_DTYPES = {
    "int": DType("int", 64),
    "uint": DType("uint", 64),
    "float": DType("float", 64),
    "bool": DType("bool", 1),
}


def packed_call_from_text(text: str) -> PackedCall:
    """Return the PackedCall that `PackedCall.to_text` wrote."""
    name, *parts = text.split("|")
    args: list[BufferArgument | DType | str] = []
    result: DType | None = None
    traces = False
    for part in parts:
        if part.startswith(_TEXT):
            args.append(unquote(part.removeprefix(_TEXT), errors="strict"))
            continue
        match part.split():
            case ["returns" | "traces" as word, dtype]:
                result = as_dtype(dtype)
                traces = word == "traces"
            case [access, dtype, rank]:
                args.append(BufferArgument(access, as_dtype(dtype), int(rank)))
            case [dtype]:
                args.append(as_dtype(dtype))
            case _:
                raise ValueError(f"{part!r} does not describe an argument")
    return PackedCall(name, tuple(args), result, traces)


@record
class Source:
    """Program text for a toolchain."""

    text: str
    language: str  # `llvm`, `cuda`, `opencl`
    # Entry k describes the loop-IR statement of line k + 1 of `text`; '' if it has none.
    line_map: Sequence[str] = ()
    # Libraries to link against: `libm`, `libmvec`, `libgomp`, `ocml`.
    requires: frozenset[str] = field(default_factory=frozenset)
    entries: tuple[str, ...] = ()  # functions that the linker keeps; () for all


@record
class Binary:
    """The output of a toolchain."""

    data: bytes
    format: str  # `so` (shared object), `o`, `s` (assembly text), `ll` (LLVM IR text)
