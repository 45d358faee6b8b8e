"""Compute capabilities: the versions by which NVIDIA's architectures are known.

`sm_86` has capability (8, 6). A trailing letter, as of `sm_90a`, does not change the capability.
"""

import re

from refcomp.foundation.errors import Unsupported, UserError

_ARCH = re.compile(r"sm_([1-9]\d{0,2})(\d)[af]?")


def archs_of(text: str) -> tuple[str, ...]:
    """Return the architectures of a target option, `sm_80,sm_90`, each once.

    Raises:
        UserError: a word between the commas is not spelled like an architecture.
    """
    archs = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for arch in archs:
        capability_of(arch)
    return archs


def capability_of(arch: str) -> tuple[int, int]:
    """Return major and minor version of an architecture: (9, 0) for `sm_90a`.

    Raises:
        UserError: `arch` is not spelled like an architecture.
    """
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise UserError(
            f"{arch!r} is not the name of an NVIDIA architecture",
            where=f"-arch={arch}",
            remedy="write sm_ and the compute capability without its dot, such as sm_90",
        )
    return int(match[1]), int(match[2])


def check_capability(arch: str, least: str, what: str) -> None:
    """Raise Unsupported if an architecture is older than `least`, which `what` needs.

    Args:
        arch: one architecture, or several with commas between them, as the target names them.
        what: the subject of the message, a plural such as "matrix products of tf32".
    """
    for each in archs_of(arch):
        if capability_of(each) < capability_of(least):
            raise Unsupported(
                f"{what} need {least} or newer, and the target is for {each}",
                why=f"GPUs of {each} have no such instruction",
                remedy=f"build with -arch={least} or newer, or schedule without {what}",
            )
