"""Identity of a scheduled computation: a hash of all that lowering reads.

Ensures: schedules of equal identity, lowered with their arguments, give functions of equal text.
Two programs that make the same computation apart, also in two processes, have equal identities.
The identity changes with each field of operations, tensors, expressions, statements and stages,
names included. The fields are found by reflection, so a new field cannot be forgotten.

The lines of the user's program are not part of the identity, because they do not change the
function. They do reach messages, and count if `with_lines` is true.

Has no identity: a computation that holds something without a value, such as a Python function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import is_dataclass

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.foundation.hashing import sha256
from refcomp.foundation.python_limits import deep_recursion
from refcomp.foundation.records import field_names
from refcomp.ir.expr import Var
from refcomp.ir.node import Bindable, Node
from refcomp.schedule.schedule import Schedule
from refcomp.te.tensor import Tensor

# Fields that repeat what other fields say, by class and name.
REDUNDANT = frozenset(
    {
        "ComputeOp._inputs",  # read off the body
        "Stage.siblings",  # the stages of the schedule, which are all described
    }
)
# The name of all fields that hold a line of the user's program.
LINE = "line"


def schedule_identity(
    schedule: Schedule, args: Sequence[Tensor | Var], *, with_lines: bool = False
) -> str | None:
    """Return the identity of a scheduled computation and its arguments.

    Args:
        schedule: the stages, after the primitives that were applied to them.
        args: the parameters of the function, in calling order.
        with_lines: True if the lines of the user's program count.

    Returns:
        64 hex digits; None if the computation holds something without a value, or is nested too
        deeply to be lowered.

    Example::

        >>> from refcomp.schedule.identity import schedule_identity
        >>> def made(constant):
        ...     A = rc.placeholder((4,), name="A")
        ...     B = rc.compute((4,), lambda i: A[i] + constant, name="B")
        ...     return schedule_identity(rc.create_schedule(B), [A, B])
        >>> made(1.0) == made(1.0), made(1.0) == made(2.0)
        (True, False)
    """
    description = _Description(with_lines)
    try:
        with deep_recursion():
            return description.digest((schedule.outputs, schedule.stages, tuple(args)))
    except (_NoValueError, Unsupported):
        return None


class _NoValueError(Exception):
    """An object is met that has no value, such as a function."""


class _Description:
    """A description of objects as a list of lines, in which line k describes object number k.

    Objects that are compared by identity get their numbers when they are first met, and their lines
    later. So cycles end, and two objects of equal fields stay apart. All other objects of equal
    fields share a line. So it does not matter which subtrees a computation shares.
    """

    def __init__(self, with_lines: bool) -> None:
        self._with_lines = with_lines
        self._lines: list[str] = []
        self._numbers: dict[str, str] = {}  # line -> reference to it
        # id of an object -> reference to its line, and the object, so that the id stays its own
        self._known: dict[int, tuple[str, object]] = {}
        self._waiting: list[tuple[int, object]] = []  # objects without a line as yet
        # class -> how messages call it, its fields, True if it is compared by identity
        self._classes: dict[type, tuple[str, tuple[str, ...], bool]] = {}

    def digest(self, root: object) -> str:
        """Return the hash of all lines that `root` needs."""
        text = self._text(root)
        while self._waiting:
            number, item = self._waiting.pop()
            self._lines[number] = self._line(item)
        whole = "\n".join([*self._lines, text])
        return sha256(whole.encode()).hexdigest()

    def _text(self, value: object) -> str:
        """Return a text that differs between different values."""
        cls = type(value)
        if value is None or cls is int or cls is bool:
            return repr(value)
        if isinstance(value, float) and cls is float:
            return value.hex()  # 0.0 and -0.0 differ
        if isinstance(value, str):
            return repr(str(value))  # a member of a Choice equals its string
        if isinstance(value, tuple | list):
            return f"[{','.join([self._text(item) for item in value])}]"
        known = self._known.get(id(value))
        if known is not None:
            return known[0]
        if isinstance(value, Node | Tensor) or is_dataclass(value):
            return self._reference(value)
        return self._text_of_data(value)

    def _text_of_data(self, value: object) -> str:
        """Return the text of a mapping, a set, bytes or an object of numpy."""
        if isinstance(value, Mapping):
            # In order, because lowering may depend on the order.
            return f"map{self._text(list(value.items()))}"
        if isinstance(value, Set):
            return self._text_of_set(value)
        if isinstance(value, bytes | complex):
            return repr(value)
        if isinstance(value, np.dtype):
            return f"dtype {value.str}"
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            data = sha256(value.tobytes()).hexdigest()
            return f"array {value.dtype.str} {value.shape} {data}"
        raise _NoValueError

    def _text_of_set(self, value: Iterable[object]) -> str:
        # A set of other objects has no order that a second program would repeat.
        if not all(isinstance(item, str | int) for item in value):
            raise _NoValueError
        return f"set[{','.join(sorted(map(self._text, value)))}]"

    def _reference(self, value: object) -> str:
        if self._class(type(value))[2]:
            reference = f"#{len(self._lines)}"
            self._waiting.append((len(self._lines), value))
            self._lines.append("")
        else:
            line = self._line(value)
            reference = self._numbers.setdefault(line, f"#{len(self._lines)}")
            if reference == f"#{len(self._lines)}":
                self._lines.append(line)
        self._known[id(value)] = (reference, value)
        return reference

    def _line(self, value: object) -> str:
        name, names, _ = self._class(type(value))
        # Attributes beside the fields, in a class of the user's, are unknown.
        if not set(getattr(value, "__dict__", ())).issubset(names):
            raise _NoValueError
        return f"{name}({','.join([self._text(getattr(value, n)) for n in names])})"

    def _class(self, cls: type) -> tuple[str, tuple[str, ...], bool]:
        known = self._classes.get(cls)
        if known is None:
            is_number = issubclass(cls, Node) and not issubclass(cls, Bindable)
            equality: object = cls.__hash__
            by_identity = equality is object.__hash__ and not is_number
            name = f"{cls.__module__}.{cls.__qualname__}"
            known = (name, described_fields(cls, self._with_lines), by_identity)
            self._classes[cls] = known
        return known


def described_fields(cls: type, with_lines: bool) -> tuple[str, ...]:
    """Return the fields of a class that are part of an identity."""
    names = field_names(cls) if is_dataclass(cls) else ()
    if cls is Tensor:  # has slots, and is not a dataclass
        names = tuple(Tensor.__slots__)
    return tuple(
        name
        for name in names
        if f"{cls.__name__}.{name}" not in REDUNDANT and (with_lines or name != LINE)
    )
