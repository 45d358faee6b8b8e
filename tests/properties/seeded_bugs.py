"""Deliberate compiler bugs, each one line of the compiler's source replaced by a wrong one.

Switching a bug on compiles the changed function beside the real one and puts its code into the
real one, so that everybody who imported it meets the bug; switching it off puts the right code
back. A bug whose line is not found exactly once is an error: it would test nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from textwrap import dedent


@dataclass(frozen=True)
class SeededBug:
    """In `function` (a method as Class.method) of `module`, `right` becomes `wrong`."""

    name: str
    module: str
    function: str
    right: str
    wrong: str


@contextmanager
def switched_on(bug: SeededBug) -> Iterator[None]:
    """The bug is in the compiler inside the `with` block."""
    module = import_module(bug.module)
    function = inspect.unwrap(attrgetter(bug.function)(module))
    text = dedent(inspect.getsource(function))
    assert text.count(bug.right) == 1, f"{bug.name}: its line is not in {bug.function} once"
    namespace = dict(vars(module))
    changed = "from __future__ import annotations\n" + text.replace(bug.right, bug.wrong)
    exec(compile(changed, f"<seeded {bug.name}>", "exec"), namespace)  # noqa: S102  our own text
    right_code = function.__code__
    function.__code__ = namespace[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = right_code
