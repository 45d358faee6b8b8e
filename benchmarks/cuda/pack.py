"""Collects in one folder all that the check of an NVIDIA GPU needs without a network.

    scripts/gpu_check --pack FOLDER [--python 3.12 ...]

The folder gets the files of the checkout, and `carried/` with pycuda's source package, wheels of
Python packages for each version of Python, modules of the target `nvptx` (if LLVM is here), and the
commit. Nothing of it is installed here. Then run FOLDER/scripts/gpu_check on the other machine.

What could not be had is named at the end: 0 all is there, 1 something is missing.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
PACKAGES = (
    *("numpy", "jinja2", "click", "rich", "ml_dtypes", "pyelftools"),  # refcomp's own
    *("setuptools", "hypothesis", "pytest"),  # building pycuda; random schedules
)
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_PTX_ARCH = "sm_75"  # newer cards translate PTX for older ones


def main(argv: Sequence[str]) -> int:
    """Collect everything into the folder that `argv` names."""
    parser = argparse.ArgumentParser(prog="scripts/gpu_check --pack", description=__doc__)
    parser.add_argument("--pack", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--python", action="append", help=f"default: {', '.join(PYTHONS)}")
    asked = parser.parse_args(argv)
    if asked.pack.exists() and any(asked.pack.iterdir()):
        parser.error(f"{asked.pack} is not empty")
    carried = asked.pack / "carried"
    (carried / "wheels").mkdir(parents=True)
    copy_checkout(asked.pack)
    missing = [] if download(source_package(carried)) else ["pycuda's source package"]
    for version in asked.python or PYTHONS:
        if not download(wheels(carried / "wheels", version)):
            missing.append(f"wheels for Python {version}")
    missing += compile_modules(carried / "modules")
    for name in missing:
        print(f"missing: {name}")
    size = sum(path.stat().st_size for path in asked.pack.rglob("*") if path.is_file())
    print(
        f"{asked.pack}: {size / 1e6:.0f} MB; now run scripts/gpu_check in it on the other machine"
    )
    return 1 if missing else 0


def copy_checkout(folder: Path) -> None:
    """Copy the files that git tracks, and write down the commit."""
    listed = _output(["git", "-C", str(ROOT), "ls-files", "-z"])
    for name in filter(None, listed.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    head = _output(["git", "-C", str(ROOT), "rev-parse", "HEAD"]).strip()
    changed = _output(["git", "-C", str(ROOT), "status", "--porcelain"]).strip()
    (folder / "carried" / "commit").write_text(head + (" and changes" if changed else "") + "\n")


def source_package(folder: Path) -> list[str]:
    """Return pip's arguments that download pycuda's source package."""
    return ["--no-deps", "--no-binary", "pycuda", "-d", str(folder), "pycuda"]


def wheels(folder: Path, version: str) -> list[str]:
    """Return pip's arguments that download all wheels for a version of Python."""
    platforms = [word for name in _PLATFORMS for word in ("--platform", name)]
    how = ["--only-binary=:all:", "--implementation", "cp", "--python-version", version]
    return [*how, *platforms, "-d", str(folder), *PACKAGES]


def download(arguments: Sequence[str]) -> bool:
    """Run `pip download`; return True if it succeeded."""
    command = [sys.executable, "-m", "pip", "download", "-q", *arguments]
    return subprocess.run(command, check=False).returncode == 0


def compile_modules(folder: Path) -> list[str]:
    """Save a module of the target nvptx for each operator; return what could not be compiled."""
    from benchmarks.operators import CASES  # noqa: PLC0415  needs refcomp's packages
    from refcomp.foundation.errors import RefcompError  # noqa: PLC0415

    folder.mkdir(parents=True)
    missing = []
    for case in CASES:
        try:
            module = case.build(f"nvptx -arch={_PTX_ARCH} -code=ptx")
            module.save(folder / f"{case.name}.nvptx.refcomp")
        except RefcompError as error:
            missing.append(f"PTX of {case.name}: {str(error).splitlines()[0]}")
    return missing


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
