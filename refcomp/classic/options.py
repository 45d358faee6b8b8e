"""`tvm.build_config`: build options by their classic names.

`ClassicSettings` holds options that building.py applies. `refcomp.build_options` applies the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.options import BuildOptions, build_options
from refcomp.foundation.records import record
from refcomp.ir.stmt import Stmt


@record
class ClassicOption:
    """An option of `tvm.build_config` that `refcomp.build_options` does not have.

    Attributes:
        accepted: the values for the behaviour that refcomp has in any case. None: all values are
            accepted, because no result depends on them.
        remedy: the advice for all other values.
    """

    accepted: tuple[object, ...] | None
    remedy: str = ""


@record
class ClassicSettings:
    """The classic options that `tvm.lower` and `tvm.decl_tensor_intrin` apply.

    Attributes:
        auto_unroll_max_step: unroll loops of at most so many stores; 0 for none.
        unroll_explicit: False to let the target's compiler unroll loops.
        offset_factor: a divisor of the offsets of buffers of tensor intrinsics; 0 for none.
        add_lower_pass: tuples (phase, function). Each function returns a statement for a statement.
    """

    auto_unroll_max_step: int = 0
    unroll_explicit: bool = True
    offset_factor: int = 0
    add_lower_pass: tuple[tuple[int, Callable[[Stmt], Stmt]], ...] = ()


_SETTINGS: ContextVar[ClassicSettings] = ContextVar(
    "classic_settings",
    default=ClassicSettings(),  # noqa: B039  (a frozen record)
)


def classic_settings() -> ClassicSettings:
    """Return the settings of the innermost `build_config`."""
    return _SETTINGS.get()


_DUMP = "set REFCOMP_DUMP=folder in the environment, or call `refcomp show`"
OPTIONS = {
    "auto_unroll_max_step": ClassicOption(None),
    "auto_unroll_max_depth": ClassicOption(None),
    "auto_unroll_max_extent": ClassicOption((0,), "write s[T].unroll(axis)"),
    "unroll_explicit": ClassicOption(None),
    "detect_global_barrier": ClassicOption(
        (False,), "build a kernel for each part: all threads meet between two kernels"
    ),
    "partition_const_loop": ClassicOption(None),
    "offset_factor": ClassicOption(None),
    "data_alignment": ClassicOption(None),
    "restricted_func": ClassicOption(
        (True,), "give each argument memory of its own: arguments never overlap"
    ),
    "double_buffer_split_loop": ClassicOption(
        (1,), "split the loop by 2, and write s[T].unroll(axis) for the inner one"
    ),
    "add_lower_pass": ClassicOption(None),
    "dump_pass_ir": ClassicOption((False,), _DUMP),
    "instrument_bound_checkers": ClassicOption(None),
    "disable_select_rewriting": ClassicOption(
        (False,), "write if_then_else where only one side may be computed"
    ),
    "disable_vectorize": ClassicOption((False,), "leave out s[T].vectorize(axis)"),
    "disable_assert": ClassicOption(
        (False,), "leave it out: each call checks its arguments"
    ),
}


@contextmanager
def build_config(**changes: object) -> Iterator[BuildOptions]:
    """Change options for the builds in the `with` block, by their classic names.

    A value for the behaviour that refcomp has in any case is accepted and changes nothing. Classic
    defaults are such values.

    Args:
        **changes: classic options, and options of `refcomp.build_options`. The classic
            `instrument_bound_checkers` sets `check_bounds`. `auto_unroll_max_step` and
            `unroll_explicit` act on `tvm.lower` and `tvm.build`, `offset_factor` on
            `tvm.decl_tensor_intrin`. `add_lower_pass` is a list of tuples (phase, function). The
            functions change the statement that `tvm.lower` makes, in the order of their phases. An
            option that is not given keeps its value.

    Yields:
        The options in force.

    Raises:
        UserError: an option is unknown, or its value is for behaviour that refcomp does not have.
            The message says what to write instead.

    Example::

        >>> from refcomp import classic as tvm
        >>> with tvm.build_config(instrument_bound_checkers=True) as options:
        ...     print(options.check_bounds)
        True
        >>> with tvm.build_config(restricted_func=False): pass
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: refcomp has no build option ...
    """
    own = {option.name for option in fields(BuildOptions)}
    known = [*OPTIONS, *sorted(own)]
    for name, value in changes.items():
        if name not in known:
            raise UserError(
                f"unknown build option {name!r}",
                remedy=advise(name, known, f"options: {', '.join(known)}"),
            )
        option = OPTIONS.get(name, ClassicOption(None))
        if option.accepted is not None and value not in option.accepted:
            raise UserError(
                f"refcomp has no build option {name}={value!r}", remedy=option.remedy
            )
    kept = {name: value for name, value in changes.items() if name in own}
    if "instrument_bound_checkers" in changes:
        kept["check_bounds"] = changes["instrument_bound_checkers"]
    token = _SETTINGS.set(_changed_settings(changes))
    try:
        # build_options checks the values.
        with build_options(**kept) as options:  # type: ignore[arg-type]
            yield options
    finally:
        _SETTINGS.reset(token)


def _changed_settings(changes: Mapping[str, object]) -> ClassicSettings:
    names = [setting.name for setting in fields(ClassicSettings)]
    chosen = {name: value for name, value in changes.items() if name in names}
    if "add_lower_pass" in chosen:
        chosen["add_lower_pass"] = _checked_passes(chosen["add_lower_pass"])
    for name, value in chosen.items():
        if name == "add_lower_pass":
            continue
        is_flag = name == "unroll_explicit"
        if not isinstance(value, int) or value < 0 or (is_flag and value > 1):
            raise UserError(
                f"the build option {name} cannot be {value!r}",
                remedy="pass True or False" if is_flag else "pass an int of at least 0",
            )
    return replace(_SETTINGS.get(), **chosen)  # type: ignore[arg-type]


def _checked_passes(value: object) -> tuple[tuple[int, Callable[[Stmt], Stmt]], ...]:
    """Return tuples (phase, function) in the order of their phases."""
    pairs = [] if value is None else value
    if isinstance(pairs, list | tuple) and all(map(_is_pass, pairs)):
        return tuple(sorted(map(tuple, pairs), key=lambda pair: pair[0]))
    raise UserError(
        f"the build option add_lower_pass cannot be {value!r}",
        remedy="pass a list of tuples (phase, function), as [(1, my_pass)]",
    )


def _is_pass(pair: object) -> bool:
    match pair:
        case [int(), function]:
            return callable(function)
    return False
