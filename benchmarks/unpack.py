"""Unpacks archives with any Python from 3.11.0 on: `filter` of `extractall` came with 3.11.4."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath
from typing import Any


def unpack(package: str | Path, folder: Path) -> None:
    """Unpack an archive into a folder.

    Raises:
        ValueError: a member would lie outside of the folder, or is a link or a device.
    """
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(package) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            is_inside = not name.is_absolute() and ".." not in name.parts
            if not is_inside or not (member.isfile() or member.isdir()):
                raise ValueError(f"{package} holds {member.name!r}, which is not unpacked")
        archive.extractall(folder, **options)
