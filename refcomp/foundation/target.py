"""Targets: what to compile for, read from a text such as `llvm -mcpu=znver4`.

A kind names a back end and lists its options. `refcomp.driver.backends` registers the kinds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from refcomp.foundation.errors import UserError


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """What a kernel may ask of a device: threads of a group in x, y and z and in all, bytes of
    shared memory of a group, groups in x, y and z, what it has by name (of OpenCL, its extensions),
    bytes of a kernel's arguments, and bytes of the longest vector."""

    threads_per_axis: tuple[int, int, int]
    threads: int
    shared_bytes: int
    features: frozenset[str] = frozenset()
    groups_per_axis: tuple[int, int, int] = (2**31 - 1,) * 3
    argument_bytes: int = 1 << 30
    vector_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class TargetKind:
    """`options` maps each option that `-name=value` may set to what it means. `limits` are those
    of a device that is not known more closely; None where code runs on no device."""

    name: str
    meaning: str
    options: Mapping[str, str]
    limits: DeviceLimits | None = None


_KINDS: dict[str, TargetKind] = {}


def register_kind(kind: TargetKind) -> None:
    """Makes `kind` known; UserError when its name is taken."""
    if kind.name in _KINDS:
        raise UserError(
            f"target kind {kind.name!r} is registered already",
            remedy="choose another name",
        )
    _KINDS[kind.name] = kind


def target_kinds() -> tuple[TargetKind, ...]:
    """All known kinds, in the order of registration."""
    return tuple(_KINDS.values())


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of target with the options given, in the order of their names."""

    kind: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join(
            [self.kind, *(f"-{name}={value}" for name, value in self.options)]
        )

    def option(self, name: str, default: str) -> str:
        """The value of an option, or `default` when it was not given."""
        return dict(self.options).get(name, default)


def as_target(value: Target | str) -> Target:
    """The Target a text means; UserError names what is known when a kind or option is not."""
    if isinstance(value, Target):
        return value
    words = value.split() if isinstance(value, str) else []
    kind = _KINDS.get(words[0]) if words else None
    if kind is None:
        known = "\n    ".join(f"{k.name}: {k.meaning}" for k in _KINDS.values())
        gpu = re.search(r"gfx\w+", value) if isinstance(value, str) else None
        hint = f"write rocm -mcpu={gpu[0]}; " if gpu else ""
        raise UserError(
            f"unknown target {value!r}", remedy=f"{hint}use one of\n    {known}"
        )
    if not all(word.isprintable() for word in words):
        raise UserError(
            f"the target {value!r} holds a character that no option has",
            why="options become arguments of tools, as texts of one line",
            remedy="check where the text comes from",
        )
    return Target(
        kind.name, tuple(sorted(_read_option(kind, word) for word in words[1:]))
    )


def _read_option(kind: TargetKind, word: str) -> tuple[str, str]:
    name, equals, value = word.removeprefix("-").partition("=")
    if not word.startswith("-") or not equals or not value or name not in kind.options:
        known = ", ".join(
            f"-{option}=... ({text})" for option, text in kind.options.items()
        )
        raise UserError(
            f"target {kind.name} has no option {word!r}",
            remedy=f"options: {known or 'none'}",
        )
    return name, value


def option_in(text: str, name: str, default: str) -> str:
    """Return the value of an option in the text of a Target, whose kind need not be known here."""
    values = (word.partition("=") for word in text.split())
    return next((value for option, _, value in values if option == f"-{name}"), default)


def limits_of(target: Target, found: DeviceLimits | None = None) -> DeviceLimits:
    """What kernels for `target` may ask for: what `found` says, a device that is there, or else the
    kind; the target's options say more. UserError for a target without a device and for options
    that are no numbers."""
    limits = found or _KINDS[target.kind].limits
    if limits is None:
        raise UserError(
            f"the target {target} has no device",
            remedy=f"use {' or '.join(kind.name for kind in target_kinds() if kind.limits)}",
        )
    threads = number_option(target, "threads", limits.threads)
    shared_bytes = number_option(target, "shared_bytes", limits.shared_bytes)
    per_axis = limits.threads_per_axis
    if threads > limits.threads:  # the axes allow no less than the group
        x, y, z = (max(axis, threads) for axis in per_axis)
        per_axis = (x, y, z)
    return replace(
        limits, threads=threads, shared_bytes=shared_bytes, threads_per_axis=per_axis
    )


def number_option(target: Target, option: str, default: int) -> int:
    """The number that an option says; UserError for what is none above 0."""
    if option not in dict(target.options):
        return default
    text = target.option(option, "")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UserError(
            f"-{option}={text} is no positive number",
            where=str(target),
            remedy=f"-{option}=256",
        )
    return int(text)
