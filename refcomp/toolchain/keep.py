"""Keep the runs of tools in the folder that $REFCOMP_KEEP names, so that they can be repeated.

Each run of a toolchain's steps leaves a folder with the inputs, the outputs, and `commands.sh`,
which makes the outputs from the inputs in any folder. Of equal runs one is kept, also if they
start at the same time. Refuses, by UserError, a folder that cannot be written.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from refcomp.foundation.dump import KEEP_VARIABLE, is_keeping
from refcomp.foundation.errors import UserError
from refcomp.toolchain.description import Description
from refcomp.toolchain.places import environment_read_by_tools

_SCRIPT = "commands.sh"
_HEAD = '#!/bin/sh\nset -e\ncd "$(dirname "$0")"\n'


def keep_run(
    inputs: Sequence[Path],
    description: Description,
    commands: Sequence[tuple[str, ...]],
) -> None:
    """Keep a copy of the folder of `inputs`, in which `commands` of a toolchain ran."""
    if not is_keeping():
        return
    root = Path(os.environ[KEEP_VARIABLE])
    folder = inputs[0].parent
    script = _HEAD
    for name, value in environment_read_by_tools(description).items():
        script += f"export {name}={shlex.quote(value)}\n"
    for command in commands:
        # Relative paths, so that the script works in any folder.
        local = [word.replace(f"{folder}{os.sep}", "") for word in command]
        script += shlex.join(local) + "\n"
    # The outputs are left out, since LLVM's bitcode names the folder in which it was made.
    digest = hashlib.sha256(script.encode())
    for path in inputs:
        digest.update(path.read_bytes())
    target = root / f"{description.name}-{digest.hexdigest()[:16]}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        _copy(folder, root, target, script)
    except OSError as error:
        raise UserError(
            f"what was run cannot be kept in {root}",
            where=f"environment variable {KEEP_VARIABLE}",
            why=error.strerror or str(error),
            remedy="set it to a folder that you may write to, or unset it",
        ) from error


def _copy(folder: Path, root: Path, target: Path, script: str) -> None:
    """Copy `folder` and `script` to `target`, completely or not at all."""
    # In the same folder, so that it can be renamed.
    temporary = Path(tempfile.mkdtemp(prefix=".", dir=root))
    temporary.chmod(0o755)
    try:
        shutil.copytree(folder, temporary, dirs_exist_ok=True)
        (temporary / _SCRIPT).write_text(script)
        (temporary / _SCRIPT).chmod(0o755)
        # If the target exists, it is of an equal run.
        with suppress(OSError):
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
