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
class OpenStatement(Generic[_V]):
    """A `with` statement that is open."""

    value: _V
    owner: object  # whose `__enter__` was called
    # The identity of the frame that called it, since several statements may enter one object. It is
    # not the frame itself, which would keep variables alive.
    frame: int


# The open statements of each thread and each asynchronous task, the innermost last. Its name
# stands for the values in messages.
OpenStatements = ContextVar[tuple[OpenStatement[_V], ...]]


def enter(
    opened: OpenStatements[_V], owner: object, value: _V, frame: FrameType
) -> None:
    """Begin a statement of `frame`, which entered `owner`."""
    opened.set((*opened.get(), OpenStatement(value, owner, id(frame))))


def leave(
    opened: OpenStatements[_V], owner: object, frame: FrameType, *, is_failing: bool
) -> None:
    """End a statement of `frame`. `is_failing` says that an exception leaves it.

    Raises:
        UserError: a statement that began inside stays open, or this one did not begin here.
    """
    statements = opened.get()
    place = _place(statements, owner, frame)
    if place is None:
        if not is_failing:
            raise _not_current(opened.name, owner)
        return
    later = statements[place + 1 :]
    running = _running(frame) if later else frozenset[int]()
    suspended = [inner for inner in later if inner.frame not in running]
    opened.set(statements[:place] + (() if suspended else later))
    if suspended and not is_failing:
        raise _still_open(opened.name, owner, suspended[-1].value)


def _not_current(what: str, owner: object) -> UserError:
    return UserError(
        f"the {what} {owner} is left where it is not current",
        why="its `with` statement began in another thread or task, or a statement around it "
        "has ended before",
        remedy="begin and end the statement in one function, without a `yield` inside",
    )


def _still_open(what: str, owner: object, inner: object) -> UserError:
    return UserError(
        f"the {what} {owner} is left while {inner}, which became current inside of it, "
        "has not been left",
        why="a generator that is suspended, or an ExitStack, holds that `with` statement open: "
        f"{inner} would stay the current {what}",
        remedy="finish or close the generator first, or let it yield outside of the statement",
    )


def _place(
    statements: tuple[OpenStatement[_V], ...], owner: object, frame: FrameType
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
