"""Targets: what to compile for, read from a text such as `llvm -mcpu=znver4`.

A kind names a code generator and lists its options. Further kinds can be registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.errors import UserError


@dataclass(frozen=True, slots=True)
class TargetKind:
    """`options` maps each option that `-name=value` may set to what it means."""

    name: str
    meaning: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """What a kernel may ask of a device: threads of a group in x, y and z and in all, bytes of
    shared memory of a group, and what it has by name (of OpenCL, its extensions)."""

    threads_per_axis: tuple[int, int, int]
    threads: int
    shared_bytes: int
    features: frozenset[str] = frozenset()


_KINDS: dict[str, TargetKind] = {}


def register_kind(kind: TargetKind) -> None:
    """Makes `kind` known; UserError when its name is taken."""
    if kind.name in _KINDS:
        raise UserError(f"target kind {kind.name!r} is registered already")
    _KINDS[kind.name] = kind


def target_kinds() -> tuple[TargetKind, ...]:
    """All known kinds, in the order of registration."""
    return tuple(_KINDS.values())


_LIBS = "shared objects with C functions that are called, as a.so,b.so"

register_kind(
    TargetKind(
        "llvm",
        "machine code for this host, by way of LLVM IR",
        {
            "mcpu": "the processor, as `llc -mcpu=help` lists them (default: native)",
            "passes": "what `opt -passes=` is given (default: default<O2>)",
            "libs": _LIBS,
        },
    )
)
register_kind(
    TargetKind(
        "interp",
        "the loop IR, run by the plain Python interpreter: slow, no tools",
        {"libs": _LIBS},
    )
)


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of target with the options given, in the order of their names."""

    kind: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"-{name}={value}" for name, value in self.options)])

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
        raise UserError(f"unknown target {value!r}", remedy=f"use one of\n    {known}")
    return Target(kind.name, tuple(sorted(_read_option(kind, word) for word in words[1:])))


def _read_option(kind: TargetKind, word: str) -> tuple[str, str]:
    name, equals, value = word.removeprefix("-").partition("=")
    if not word.startswith("-") or not equals or not value or name not in kind.options:
        known = ", ".join(f"-{option}=... ({text})" for option, text in kind.options.items())
        raise UserError(
            f"target {kind.name} has no option {word!r}",
            remedy=f"options: {known or 'none'}",
        )
    return name, value
