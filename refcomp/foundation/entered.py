"""The values that `with` statements made current in this thread, in the order of entering.

Statements of one thread may end in another order than they began: a generator that is suspended
keeps its statements open. Ensures: a statement ends for itself alone, so that the current value is
that of the last statement that is still open.

Refuses with UserError the end of a statement inside of which a suspended generator began another
one, whose value would stay current. Refuses also an end in a thread in which the statement did not
begin. Afterwards the values are those from before the statement. An exception that already leaves
the statement goes on instead.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Generic, TypeVar

from refcomp.foundation.errors import UserError

_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class _Statement(Generic[_V]):
    """A `with` statement that is open."""

    value: _V
    owner: object  # whose `__enter__` was called
    # The identity of the frame that called it, since several statements may enter one object. It is
    # not the frame itself, which would keep variables alive.
    frame: int


class EnteredValues(Generic[_V]):
    """The open statements of each thread and each asynchronous task.

    Args:
        what: names the values in messages, such as `target`.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._open: ContextVar[tuple[_Statement[_V], ...]] = ContextVar(
            what, default=()
        )

    @property
    def current(self) -> _V | None:
        """Return the value of the last statement that is still open; None if there is none."""
        statements = self._open.get()
        return statements[-1].value if statements else None

    def enter(self, owner: object, value: _V, frame: FrameType) -> None:
        """Begin a statement of `frame`, which entered `owner`."""
        self._open.set((*self._open.get(), _Statement(value, owner, id(frame))))

    def leave(self, owner: object, frame: FrameType, *, is_failing: bool) -> None:
        """End a statement of `frame`. `is_failing` says that an exception leaves it.

        Raises:
            UserError: a statement that began inside stays open, or this one did not begin here.
        """
        statements = self._open.get()
        place = _place(statements, owner, frame)
        if place is None:
            if not is_failing:
                raise self._not_current(owner)
            return
        later = statements[place + 1 :]
        running = _running(frame) if later else frozenset[int]()
        suspended = [inner for inner in later if inner.frame not in running]
        self._open.set(statements[:place] + (() if suspended else later))
        if suspended and not is_failing:
            raise self._still_open(owner, suspended[-1].value)

    def _not_current(self, owner: object) -> UserError:
        return UserError(
            f"the {self._what} {owner} is left where it is not current",
            why="its `with` statement began in another thread or task, or a statement around it "
            "has ended before",
            remedy="begin and end the statement in one function, without a `yield` inside",
        )

    def _still_open(self, owner: object, inner: _V) -> UserError:
        return UserError(
            f"the {self._what} {owner} is left while {inner}, which became current inside of it, "
            "has not been left",
            why="a generator that is suspended, or an ExitStack, holds that `with` statement open: "
            f"{inner} would stay the current {self._what}",
            remedy="finish or close the generator first, or let it yield outside of the statement",
        )


def _place(
    statements: tuple[_Statement[_V], ...], owner: object, frame: FrameType
) -> int | None:
    """Return the place of the statement that `frame` ends; None if none has entered `owner`."""
    places = [i for i, opened in enumerate(statements) if opened.owner is owner]
    own = [i for i in places if statements[i].frame == id(frame)]
    # An ExitStack enters and leaves by frames that differ.
    return max(own or places, default=None)


def _running(frame: FrameType) -> frozenset[int]:
    """Return the identities of a frame and of all that wait for it. Others are suspended."""
    frames = []
    caller: FrameType | None = frame
    while caller is not None:
        frames.append(id(caller))
        caller = caller.f_back
    return frozenset(frames)
