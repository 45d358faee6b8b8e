"""Triples: names of machines, such as `aarch64-linux-gnu`, for which LLVM makes code.

Code for another machine than this one is made to be read and saved. Refuses with UserError machines
on which the code would differ in meaning from the loop IR. It also refuses systems other than
Linux, since the code calls functions of Linux's C libraries.

Vectors of 32-bit Arm (`-mattr=+neon`) take denormal floats for zero. Without this feature, vectors
of floats become scalars, which do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.foundation.machine import machine


@dataclass(frozen=True, slots=True)
class Architecture:
    """A kind of processor.

    Attributes:
        name: as `machine()` returns it.
        words: a regular expression of LLVM's names, the first words of triples.
        example: a triple.
        attributes: the features that each system of this kind has, as `-mattr=` of LLVM's tools.
    """

    name: str
    words: str
    example: str
    attributes: str = ""


# Little-endian processors with floats of 32 and 64 bits that round after each operation. i386 is
# not among them: its old floating-point unit rounds later. Linux for RISC-V needs `gc`.
ARCHITECTURES = (
    Architecture("x86_64", "x86_64|amd64", "x86_64-linux-gnu"),
    Architecture("aarch64", "aarch64|arm64", "aarch64-linux-gnu"),
    Architecture("arm", r"(?:arm|thumb)(?:v[78]\w*)?", "armv7-linux-gnueabihf"),
    Architecture("riscv64", "riscv64", "riscv64-linux-gnu", "+m,+a,+f,+d,+c"),
    Architecture("ppc64le", "powerpc64le|ppc64le", "powerpc64le-linux-gnu"),
)
_ATTRIBUTES = re.compile(r"[+-][\w.-]+(,[+-][\w.-]+)*", re.ASCII)
_GNU = ("", "gnu")  # environments with the C library that host code is linked with


def architecture_of(triple: str) -> Architecture:
    """Return the architecture of a triple. Raises UserError unless code can be made for it."""
    word, *rest = triple.split("-")
    for architecture in ARCHITECTURES:
        if re.fullmatch(architecture.words, word):
            if "linux" in rest:
                return architecture
            raise UserError(
                f"no code can be made for the machine {triple!r}",
                why="its system is not Linux, whose C libraries the code calls",
                remedy=f"name a machine with Linux, such as {architecture.example}",
            )
    known = ", ".join(known.example for known in ARCHITECTURES)
    raise UserError(
        f"no code can be made for the machine {triple!r}",
        why=f"refcomp does not know that floats and memory of {word!r} fit the loop IR",
        remedy=f"use a triple of one of these kinds: {known}; GPUs have targets of their own, "
        "such as rocm and cuda",
    )


def is_this_host(triple: str) -> bool:
    """Return True if code for `triple` is code for this machine and its C library."""
    environment = triple.split("-")[-1].replace("linux", "")
    return architecture_of(triple).name == machine() and environment in _GNU


def check_attributes(attributes: str, triple: str) -> None:
    """Raise UserError unless `-mattr=` is a list of features, for another machine than this one."""
    if not triple or is_this_host(triple):
        raise UserError(
            f"-mattr={attributes} is an option of code for another machine, which is only read",
            why="code with features that this processor lacks would end the program",
            remedy="name a processor that has the features, as in -mcpu=x86-64-v3, or another "
            "machine, as in -mtriple=aarch64-linux-gnu",
        )
    if not _ATTRIBUTES.fullmatch(attributes):
        raise UserError(
            f"-mattr={attributes} is not a list of features",
            remedy="write + or - before each, and commas between them: -mattr=+neon,-crypto",
        )
