"""Writes every stage of a build as numbered text, where REFCOMP_DUMP names a folder."""

import os
from itertools import count
from pathlib import Path

_numbers = count()


def is_dumping() -> bool:
    """Whether REFCOMP_DUMP names a folder."""
    return bool(os.environ.get("REFCOMP_DUMP"))


def dump_stage(name: str, text: str) -> None:
    """Writes `text` as NNN_name.txt into the folder, making it when it is missing; else nothing."""
    folder = os.environ.get("REFCOMP_DUMP")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:80]
    Path(folder, f"{next(_numbers):03}_{safe}.txt").write_text(text, encoding="utf-8")
