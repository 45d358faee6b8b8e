"""Targets: what to compile for, parsed from a text such as `llvm -mcpu=znver4`.

Each back end has a kind of target, which lists its options. refcomp's own are in
`refcomp.foundation.own_targets`; `register_kind` adds others.
"""

from __future__ import annotations

import re
import sys
from contextvars import ContextVar
from dataclasses import replace
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.own_targets import OWN_KINDS
from refcomp.foundation.records import record
from refcomp.foundation.target_kind import DeviceLimits, TargetKind

if TYPE_CHECKING:
    from refcomp.foundation.entered import OpenStatements

# By name, in the order of registration. The first ones are refcomp's own.
_KINDS: dict[str, TargetKind] = dict(OWN_KINDS)
# What to compile for if a build names no target, and no `with` statement does.
DEFAULT_TARGET = "llvm"
# The option of objects that describe their functions. It may stand without a value.
SYSTEM_LIB = "system-lib"
# The words of classic programs for options.
_CLASSIC_OPTIONS = {"target": "mtriple"}
# Kinds of targets of classic programs that refcomp does not have -> what to write.
_CLASSIC_KINDS = {
    "stackvm": "write interp, which needs no tools either",
    "c": "write llvm: module.save writes LLVM IR, assembly and objects",
    **dict.fromkeys(("metal", "vulkan", "opengl", "webgpu"), "write opencl"),
    **dict.fromkeys(("sdaccel", "aocl", "aocl_sw_emu"), "FPGAs are not a target"),
    "ext_dev": "call refcomp.register_backend to add a target",
}
# Options of classic programs that chose tuned schedules.
_TUNING_OPTIONS = ("device", "model", "keys")


def register_kind(kind: TargetKind) -> None:
    """Register `kind`. UserError if its name is taken."""
    if kind.name in _KINDS:
        raise UserError(
            f"target kind {kind.name!r} is registered already",
            remedy="choose another name",
        )
    _KINDS[kind.name] = kind


def target_kinds() -> tuple[TargetKind, ...]:
    """Return all kinds in the order of registration."""
    return tuple(_KINDS.values())


def kind_of(target: Target | str) -> TargetKind:
    """Return the kind of a target. Raises UserError for an unknown one."""
    return _KINDS[as_target(target).kind]


@record
class Target:
    """A kind of target with options: what to compile for. `as_target` parses the text of a target.

    `with target:` makes the target the current one of this thread. `build` compiles for it unless
    it gets another one, and functions made by `generic_func` choose by it. The statement must not
    end while a suspended generator holds open another one that began inside of it.

    Args:
        kind: the first word of the text: `llvm`, `interp`, `opencl`, `rocm`, or a registered one.
            A whole text is read as `as_target` reads it.
        options: pairs of a name and a value, sorted by name.

    Raises:
        UserError: a whole text cannot be read.

    Example::

        >>> target = rc.as_target("llvm -mcpu=znver4")
        >>> target.kind, target.option("mcpu", "native"), target.option("libs", "none")
        ('llvm', 'znver4', 'none')
        >>> target.keys
        ('llvm', 'cpu')
        >>> with target:
        ...     print(rc.current_target())
        llvm -mcpu=znver4
    """

    kind: str  # name
    options: tuple[tuple[str, str], ...] = ()  # (name, value), sorted

    def __post_init__(self) -> None:
        if isinstance(self.kind, str) and len(self.kind.split()) == 1:
            return
        # The constructor takes a whole text, too: Target("llvm -mcpu=znver4").
        if not isinstance(self.kind, str):
            raise UserError(
                f"{self.kind!r} is not a target", remedy='pass a text such as "llvm"'
            )
        read = as_target(str(self))
        object.__setattr__(self, "kind", read.kind)
        object.__setattr__(self, "options", read.options)

    def __str__(self) -> str:
        return " ".join(
            [self.kind, *(f"-{name}={value}" for name, value in self.options)]
        )

    def option(self, name: str, default: str) -> str:
        """Return the value of an option, or `default` if it is not set.

        Args:
            name: the name without its dash, such as `"mcpu"`.
            default: the text to return if the option is not set.
        """
        return dict(self.options).get(name, default)

    @property
    def keys(self) -> tuple[str, ...]:
        """The words that a generic function looks for, the most special one first."""
        kind = kind_of(self)
        general = "cpu" if kind.limits is None else "gpu"
        return tuple(dict.fromkeys((self.kind, kind.device, general)))

    def __enter__(self) -> Target:
        chosen = as_target(self)
        # Here, since few programs have such statements.
        from refcomp.foundation.entered import enter  # noqa: PLC0415

        enter(_ENTERED, self, chosen, sys._getframe(1))
        return chosen

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        from refcomp.foundation.entered import leave  # noqa: PLC0415  (as above)

        leave(_ENTERED, self, sys._getframe(1), is_failing=kind is not None)


# The targets of the `with` statements around.
_ENTERED: OpenStatements[Target] = ContextVar("target", default=())


def current_target(allow_none: bool = True) -> Target | None:
    """Return the target of the innermost `with` statement of this thread.

    Args:
        allow_none: False to refuse a call outside of all these statements.

    Returns:
        The target; None if there is none.

    Raises:
        UserError: there is no current target, and `allow_none` is False.

    Source: TVM, tvm.target.current_target.

    Example::

        >>> print(rc.current_target())
        None
        >>> with rc.target.create("opencl"):
        ...     print(rc.current_target())
        opencl
    """
    entered = _ENTERED.get()
    current = entered[-1].value if entered else None
    if current is None and allow_none is False:
        raise UserError(
            "no target is the current one",
            remedy='call this inside of: with refcomp.target.create("llvm"):',
        )
    return current


def target_or_current(value: Target | str | None) -> Target:
    """Return a given target, else the current one, else `DEFAULT_TARGET`. UserError."""
    if value is None:
        return current_target() or as_target(DEFAULT_TARGET)
    return as_target(value)


def as_target(value: Target | str) -> Target:
    """Return the Target that a text means.

    Args:
        value: a kind, then options: `"llvm -mcpu=znver4"`. A Target is returned as it is. With
            `-mtriple=`, code is made for another machine, to be read and saved.

    Raises:
        UserError: the kind or an option is unknown, and the remedy lists the known ones; or an
            option is there twice.

    Source: TVM, tvm.target.create, whose syntax this follows.

    Example::

        >>> str(rc.as_target("rocm -mcpu=gfx942"))
        'rocm -mcpu=gfx942'
        >>> str(rc.as_target("llvm -target=aarch64-linux-gnu"))
        'llvm -mtriple=aarch64-linux-gnu'
        >>> rc.as_target("llvm -speed=high")
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: target llvm has no option '-speed=high'...
    """
    if isinstance(value, Target):
        return value if value.kind in _KINDS else as_target(str(value))
    words = value.split() if isinstance(value, str) else []
    kind = _KINDS.get(words[0]) if words else None
    if kind is None:
        known = "\n    ".join(f"{k.name}: {k.meaning}" for k in _KINDS.values())
        gpu = re.search(r"gfx\w+", value) if isinstance(value, str) else None
        first = words[0] if words else ""
        hint = f"write rocm -mcpu={gpu[0]}; " if gpu else ""
        if first in _CLASSIC_KINDS:
            hint = f"{_CLASSIC_KINDS[first]}; "
        remedy = f"{hint}use one of\n    {known}"
        raise UserError(
            f"unknown target {value!r}", remedy=advise(first, _KINDS, remedy)
        )
    if not all(word.isprintable() for word in words):
        raise UserError(
            f"the target {value!r} has a character that cannot be printed",
            why="options become arguments of tools, each a text of one line",
            remedy="check where the text comes from",
        )
    options = sorted(_read_option(kind, word) for word in words[1:])
    for (name, _), (again, _) in pairwise(options):
        if name == again:
            raise UserError(
                f"the target {value!r} has the option -{name} twice",
                remedy="write it once",
            )
    target = Target(kind.name, tuple(options))
    _check_machine(target)
    return target


def _check_machine(target: Target) -> None:
    """Raise UserError if no code can be made for the machine of a target."""
    triple = target.option("mtriple", "")
    if not triple and not target.option("mattr", ""):
        return
    # Here, since few programs name another machine.
    from refcomp.foundation.triples import (  # noqa: PLC0415
        architecture_of,
        check_attributes,
    )

    if triple:
        architecture_of(triple)
    if attributes := target.option("mattr", ""):
        check_attributes(attributes, triple)
    if foreign_triple(target) and target.option("mcpu", "") == "native":
        raise UserError(
            f"the target {target} names the processor of this machine and another machine",
            remedy="leave -mcpu=native away, or name a processor of the other machine",
        )
    if foreign_triple(target) and target.option("libs", ""):
        raise UserError(
            f"the target {target} names libraries of this machine and another machine",
            remedy="leave -libs= away: the linker of the other machine gets its libraries",
        )


def foreign_triple(target: Target) -> str:
    """Return the triple of the machine for which code is made; '' if this host runs it."""
    triple = target.option("mtriple", "")
    if not triple:
        return ""
    from refcomp.foundation.triples import is_this_host  # noqa: PLC0415  (as above)

    return "" if is_this_host(triple) else triple


def _read_option(kind: TargetKind, word: str) -> tuple[str, str]:
    name, equals, value = word.removeprefix("-").partition("=")
    if name not in kind.options:
        name = _CLASSIC_OPTIONS.get(name, name)
    is_switch = word.startswith("-") and name.removeprefix("-") == SYSTEM_LIB
    if is_switch and SYSTEM_LIB in kind.options:
        return SYSTEM_LIB, _read_switch(word, value if equals else "1")
    if not word.startswith("-") or not equals or not value or name not in kind.options:
        known = ", ".join(
            f"-{option}=... ({text})" for option, text in kind.options.items()
        )
        remedy = advise(name, kind.options, f"options: {known or 'none'}")
        if name in _TUNING_OPTIONS:
            remedy = (
                "leave it out: it chose tuned schedules, which refcomp does not have"
            )
        raise UserError(f"target {kind.name} has no option {word!r}", remedy=remedy)
    return name, value


def _read_switch(word: str, value: str) -> str:
    if value not in ("0", "1"):
        raise UserError(
            f"the option {word!r} is neither on nor off",
            remedy=f"write -{SYSTEM_LIB}, or -{SYSTEM_LIB}=0 to leave it off",
        )
    return value


def option_in(text: str, name: str, default: str) -> str:
    """Return the value of an option in the text of a target. The kind may be unknown."""
    for word in text.split():
        option, _, value = word.partition("=")
        if option == f"-{name}":
            return value
    return default


def with_host(target: Target, target_host: Target | str | None) -> Target:
    """Return a target with the option of the target of its host part that refcomp has for both.

    Args:
        target: what is compiled for.
        target_host: of the kind `llvm`; None for the default.

    Raises:
        UserError: the host part cannot be compiled for `target_host`, or `target` lacks the option.
    """
    if target_host is None:
        return target
    host = as_target(target_host)
    if host.kind != DEFAULT_TARGET:
        raise UserError(
            f"a host function cannot be compiled for {target_host}", remedy='"llvm"'
        )
    if not is_system_lib(str(host)) or is_system_lib(str(target)):
        return target
    kept = [f"-{name}={value}" for name, value in target.options if name != SYSTEM_LIB]
    return as_target(" ".join([target.kind, *kept, f"-{SYSTEM_LIB}"]))


def is_system_lib(text: str) -> bool:
    """Return True if the text of a target asks for objects that describe their functions."""
    return option_in(text, SYSTEM_LIB, "0") == "1"


def limits_of(target: Target, found: DeviceLimits | None = None) -> DeviceLimits:
    """Return the limits of kernels for `target`.

    They are those of the device that was `found`, or else those of the kind. Options of the target
    override them. Raises UserError if the target has no device or an option is not a number.
    """
    limits = found or _KINDS[target.kind].limits
    if limits is None:
        raise UserError(
            f"the target {target} has no device",
            remedy=f"use {' or '.join(kind.name for kind in target_kinds() if kind.limits)}",
        )
    threads = number_option(target, "threads", limits.threads)
    shared_bytes = number_option(target, "shared_bytes", limits.shared_bytes)
    per_axis = limits.threads_per_axis
    if threads > limits.threads:
        # A group of so many threads along one axis must be possible too.
        x, y, z = (max(axis, threads) for axis in per_axis)
        per_axis = (x, y, z)
    return replace(
        limits, threads=threads, shared_bytes=shared_bytes, threads_per_axis=per_axis
    )


def number_option(target: Target, option: str, default: int) -> int:
    """Return an option as a number. UserError unless it is a number above 0."""
    if option not in dict(target.options):
        return default
    text = target.option(option, "")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UserError(
            f"-{option}={text} is not a positive number",
            where=str(target),
            remedy=f"-{option}=256",
        )
    return int(text)
