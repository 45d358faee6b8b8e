"""Dumps of a build: every stage as a numbered text file, if REFCOMP_DUMP names a folder.

Refuses, with UserError, a folder that cannot be written to.
"""

import os
from itertools import count
from pathlib import Path

from refcomp.foundation.errors import UserError

VARIABLE = "REFCOMP_DUMP"
# Names the folder in which `refcomp.toolchain.keep` keeps the runs of tools.
KEEP_VARIABLE = "REFCOMP_KEEP"
_numbers = count()


def is_dumping() -> bool:
    """Return True if REFCOMP_DUMP names a folder."""
    return bool(os.environ.get(VARIABLE))


def is_keeping() -> bool:
    """Return True if runs of tools are kept. Then the cache is not read."""
    return bool(os.environ.get(KEEP_VARIABLE))


def dump_stage(name: str, text: str) -> None:
    """Write `text` as NNN_name.txt into the folder of REFCOMP_DUMP, if it is set.

    Makes the folder if it is missing.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:80]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        path = Path(folder, f"{next(_numbers):03}_{safe}.txt")
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"stages cannot be written to {folder}",
            where=f"environment variable {VARIABLE}",
            why=error.strerror or str(error),
            remedy="set it to a folder that you may write to, or unset it",
        ) from error
