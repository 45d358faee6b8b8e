"""Builds pycuda from its carried source package, without a network, in a process of its own.

Needs a C++ compiler, the toolkit's cuda.h and setuptools. pycuda's random numbers are left out, so
that curand.h is not needed. The compiler runs on all cores: one would take minutes.

Only the standard library is imported here: nothing else may be installed yet.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from benchmarks.unpack import unpack

_ROOT = Path(__file__).parents[2]
# Optimised code for the host would take twice as long to compile, and no figure needs it.
_OPTIONS = """CUDA_ROOT = {root!r}
CUDA_ENABLE_CURAND = False
CXXFLAGS = ["-O1", "-g0", "-w"]
CUDADRV_LIB_DIR = [{link!r}]
"""
_SAID = 2000  # characters of the compiler's last words in a failure


def start(carried: Path, folder: Path) -> subprocess.Popen[bytes] | None:
    """Begin to build pycuda into folder/site; None if it is installed or no package is carried."""
    if importlib.util.find_spec("pycuda") is not None:
        return None
    found = sorted(carried.glob("pycuda-*.tar.gz"))
    if not found:
        return None
    log = (folder / "pycuda.log").open("wb")
    command = [sys.executable, "-m", __name__, str(found[-1].resolve()), str(folder.resolve())]
    return subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=subprocess.STDOUT)


def finish(making: subprocess.Popen[bytes], timeout_s: float) -> str:
    """Wait for the build; return why it failed, or ''."""
    try:
        code = making.wait(timeout_s)
    except subprocess.TimeoutExpired:
        making.kill()
        making.wait()
        return f"pycuda was not built within {timeout_s:.0f} s"
    if code == 0:
        return ""
    log = Path(str(making.args[-1]), "pycuda.log")  # type: ignore[index]
    said = log.read_text(encoding="utf-8", errors="replace")[-_SAID:]
    return f"pycuda could not be built (exit code {code}):\n{said}"


def cuda_root() -> str:
    """Return the folder of the toolkit, which has include/cuda.h."""
    named = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        named.append(str(Path(nvcc).resolve().parents[1]))
    usual = ["/usr/local/cuda", *sorted(glob.glob("/usr/local/cuda-*"), reverse=True), "/opt/cuda"]
    roots = [root for root in (*named, *usual) if root]
    return next((r for r in roots if Path(r, "include", "cuda.h").exists()), roots[0])


def driver_library() -> str:
    """Return the path of the driver's library, or of the toolkit's stub for linking."""
    folders = [f"{cuda_root()}/{place}/stubs" for place in ("lib64", "lib", "targets/*/lib")]
    folders += ["/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"]
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    for folder in filter(None, folders):
        for name in ("libcuda.so", "libcuda.so.1"):
            if found := glob.glob(os.path.join(folder, name)):
                return found[0]
    return _by_loader() or "libcuda.so.1"


def _by_loader() -> str:
    """Return the path in the loader's cache, or ''."""
    tool = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        done = subprocess.run([tool, "-p"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    found = re.search(r"libcuda\.so\.1 .*x86-64.* => (.+)", done.stdout)
    return found[1] if found else ""


def main(package: str, folder: str) -> None:
    """Unpack `package`, and build it into folder/site."""
    place = Path(folder)
    unpack(package, place / "pycuda")
    (source,) = (place / "pycuda").iterdir()
    link = (place / "link").resolve()
    link.mkdir()
    # A driver without its development package has no libcuda.so, only libcuda.so.1.
    (link / "libcuda.so").symlink_to(driver_library())
    options = _OPTIONS.format(root=cuda_root(), link=str(link))
    (source / "siteconf.py").write_text(options, encoding="utf-8")
    os.chdir(source)
    sys.path.insert(0, str(source))
    _compile_on_all_cores()
    sys.argv = ["setup.py", "build", "--build-lib", str(place.resolve() / "site")]
    runpy.run_path("setup.py", run_name="__main__")


def _compile_on_all_cores() -> None:
    from setuptools._distutils.ccompiler import CCompiler  # noqa: PLC0415  setup.py uses it, too

    def compile_all(
        self: Any, sources: Any, output_dir: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        names = ("macros", "include_dirs", "debug", "extra_preargs", "extra_postargs", "depends")
        given = dict.fromkeys(names) | dict(zip(names, args, strict=False)) | kwargs
        set_up = self._setup_compile(
            *(output_dir, given["macros"], given["include_dirs"], sources),
            *(given["depends"], given["extra_postargs"]),
        )
        _, objects, extra, options, build = set_up
        flags = self._get_cc_args(options, given["debug"], given["extra_preargs"])

        def compile_one(name: str) -> None:
            source, suffix = build[name]
            self._compile(name, source, suffix, flags, extra, options)

        with ThreadPool(os.cpu_count()) as pool:
            pool.map(compile_one, [name for name in objects if name in build], chunksize=1)
        return objects

    CCompiler.compile = compile_all


if __name__ == "__main__":
    main(*sys.argv[1:])
