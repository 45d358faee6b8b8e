"""Starts the check of an NVIDIA GPU where nothing of refcomp is installed yet.

    python3 -m benchmarks.cuda.prepare [--pack FOLDER [--python 3.12]] [arguments of the check]

It unpacks carried wheels into a private folder, as far as their packages are not installed, and
runs `benchmarks.cuda.check` there. With --pack it collects everything for a machine without a
network (`benchmarks.cuda.pack`). Only the standard library is imported here.

Exit code 2: packages are missing, and the message says which.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Modules that refcomp and its check import. hypothesis only serves the random schedules.
NEEDED = ("numpy", "jinja2", "click", "rich", "ml_dtypes", "elftools", "setuptools")
_WHEEL = re.compile(
    r".+?-.+?(?:-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)


def main(argv: Sequence[str]) -> int:
    """Run what `argv` requests; a check replaces this process."""
    if "--pack" in argv:
        from benchmarks.cuda import pack  # noqa: PLC0415  only where there is a network

        return pack.main(argv)
    folder = Path(tempfile.mkdtemp(prefix="refcomp-gpu-check-"))
    site = folder / "site"
    site.mkdir()
    unpack_wheels(ROOT / "carried" / "wheels", site)
    sys.path.insert(0, str(site))
    importlib.invalidate_caches()
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"gpu_check: these packages are missing: {', '.join(missing)}", file=sys.stderr)
        print(
            "  make a folder by scripts/gpu_check --pack FOLDER, where there is a network, and run"
        )
        print("  FOLDER/scripts/gpu_check here", flush=True)
        return 2
    places = [str(site), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    # The caches of refcomp and of CUDA belong to this run alone.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(places),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "CUDA_CACHE_PATH": str(folder / "cache" / "cuda"),
    }
    command = [sys.executable, "-m", "benchmarks.cuda.check", "--folder", str(folder), *argv]
    sys.stdout.flush()
    os.execve(sys.executable, command, environment)


def unpack_wheels(wheels: Path, site: Path) -> list[str]:
    """Unpack the wheels that fit this Python and whose packages are not installed; return them."""
    unpacked = []
    for wheel in sorted(wheels.glob("*.whl")):
        if not fits(wheel.name, sys.version_info[:2]):
            continue
        with zipfile.ZipFile(wheel) as archive:
            parts = {name.split("/")[0] for name in archive.namelist()}
            modules = {
                p.removesuffix(".py") for p in parts if not p.endswith((".dist-info", ".data"))
            }
            names = [name for name in modules if name.isidentifier()]
            if names and all(importlib.util.find_spec(name) for name in names):
                continue
            archive.extractall(site)
            unpacked.append(wheel.name)
    return unpacked


def fits(wheel: str, version: tuple[int, int]) -> bool:
    """Return True if a wheel of this name is for this version of Python."""
    found = _WHEEL.fullmatch(wheel)
    if found is None:
        return False
    pythons = found["python"].split(".")
    if "py3" in pythons:
        return True
    if f"cp{version[0]}{version[1]}" in pythons:
        return not found["abi"].endswith("t")  # without threads of its own
    least = [int(p[3:]) for p in pythons if re.fullmatch(r"cp3\d+", p)]
    return found["abi"] == "abi3" and any(minor <= version[1] for minor in least)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
