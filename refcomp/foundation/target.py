"""Targets: what to compile for, read from a text such as `llvm -mcpu=znver4`.

A kind names a code generator and lists its options. Further kinds can be registered.
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
_LIMIT_OPTIONS = {
    "threads": "how many threads a group may have (default: as the device says)",
    "shared_bytes": "bytes of shared memory that a group may have (default: as the device says)",
}
register_kind(
    TargetKind(
        "opencl",
        "kernels in OpenCL C, which the device's driver compiles, and a host function",
        _LIMIT_OPTIONS,
        # What every device of the last years has, AMD's included.
        DeviceLimits(
            threads_per_axis=(256, 256, 256),
            threads=256,
            shared_bytes=32768,
            features=frozenset(
                {"cl_khr_fp64", "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"}
            ),
        ),
    )
)
register_kind(
    TargetKind(
        "rocm",
        "machine code for AMD GPUs, by way of LLVM IR, and a host function",
        {
            "mcpu": "the GPU, as `llc -march=amdgcn -mcpu=help` lists them (default: the one that "
            "is there, else gfx90a)",
            "passes": "what `opt -passes=` is given (default: default<O3>)",
            "wavefront": "lanes of a wave, 32 or 64 (default: as the GPU likes best)",
            "waves": "how many waves a SIMD shall have registers for at least (default: a group's)",
            **_LIMIT_OPTIONS,
        },
        DeviceLimits(
            threads_per_axis=(1024, 1024, 1024),
            threads=1024,
            shared_bytes=65536,
            features=frozenset({"fp16", "fp64", "int64_atomics", "subgroups"}),
            groups_per_axis=(2**31 - 1, 65535, 65535),
            argument_bytes=4096,
            vector_bytes=128,  # of 32 registers side by side, the most that instructions take
        ),
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
        gpu = re.search(r"gfx\w+", value) if isinstance(value, str) else None
        hint = f"write rocm -mcpu={gpu[0]}; " if gpu else ""
        raise UserError(f"unknown target {value!r}", remedy=f"{hint}use one of\n    {known}")
    if not all(word.isprintable() for word in words):
        raise UserError(
            f"the target {value!r} holds a character that no option has",
            why="options become arguments of tools, as texts of one line",
            remedy="check where the text comes from",
        )
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
    return replace(limits, threads=threads, shared_bytes=shared_bytes, threads_per_axis=per_axis)


def number_option(target: Target, option: str, default: int) -> int:
    """The number that an option says; UserError for what is none above 0."""
    if option not in dict(target.options):
        return default
    text = target.option(option, "")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UserError(
            f"-{option}={text} is no positive number", where=str(target), remedy=f"-{option}=256"
        )
    return int(text)
