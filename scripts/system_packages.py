"""The distribution's packages that refcomp uses: names the missing ones, and installs them.

With `--no-install` it only names them, with `--demo` it asks for what the demo needs. It leaves out
what cannot be had. It needs nothing but Python, and sudo, without a password, where not root.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# house: allow-long (it runs before anything is installed, so it imports nothing of ours)
LLVM, HIP = ("llvm", "lld", "clang"), ("libamdhip64",)
IS_DEMO = "--demo" in sys.argv
OTHERS = ["rocm-device-libs", "pocl-opencl-icd", "ocl-icd-libopencl1", "oclgrind", "libgomp1"]
OTHERS += ["libamdhip64-dev", "llvm-15", "lld-15", "llvm-16", "lld-16"]  # tests
OTHERS += ["chromium-driver", "g++"]  # tests
# Tests; a program of the same name on PATH will do, as npm often comes with another Node.js.
PROGRAMS = ["npm", "espeak-ng"]
OTHERS += PROGRAMS
VENV = "python{}.{}-venv".format(*sys.version_info)
UNOFFERED = Path(__file__).parents[1] / ".venv" / "unoffered-packages"
SUDO = [] if os.geteuid() == 0 else ["sudo", "-n"]
APT = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "Acquire::Retries=2"]


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def succeeds(*command: str) -> bool:
    return subprocess.run([*SUDO, *command], stdin=subprocess.DEVNULL).returncode == 0


def installed() -> set[str]:
    command = ["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n"]
    lines = subprocess.check_output(command, text=True).splitlines()
    return {line.split()[1] for line in lines if line[1] == "i"}


def offered() -> set[str]:
    numbered = [f"{name}-[0-9]+" for name in LLVM + HIP]
    names = "|".join([*numbered, *map(re.escape, [*OTHERS, VENV])])
    command = ["apt-cache", "search", "--names-only", f"^({names})$"]
    lines = subprocess.check_output(command, text=True).splitlines()
    return {line.split()[0] for line in lines}


def numbers(names: tuple[str, ...], packages: set[str]) -> set[int]:
    """Return the numbers N for which all NAME-N are among the packages."""
    found = [{int(m[1]) for p in packages if (m := re.fullmatch(rf"{n}-(\d+)", p))} for n in names]
    return set.intersection(*found)


def choose_llvm(here: set[int], there: set[int]) -> int:
    """Return the LLVM to use: if possible 19 or newer, of these one that is here, else 19."""
    rank = {n: (n >= 19, n in here, n == 19, n) for n in here | there if n >= 15}
    return max(rank, key=rank.__getitem__, default=19)


def missing(here: set[str], there: set[str]) -> list[str]:
    parts = LLVM[:2] if IS_DEMO else LLVM  # clang reads OpenCL C
    llvm = choose_llvm(numbers(parts, here), numbers(parts, there))
    hip = max(numbers(HIP, here) or numbers(HIP, there) or {5})
    rest = ["libgomp1"] if IS_DEMO else [f"{name}-{hip}" for name in HIP] + OTHERS
    rest += [] if importlib.util.find_spec("ensurepip") else [VENV]
    names = [f"{name}-{llvm}" for name in parts] + rest
    there_is = {*here, *filter(shutil.which, PROGRAMS)}
    return [name for name in dict.fromkeys(names) if name not in there_is]


def install() -> None:
    """Install all at once, or one by one where one of them fails."""
    say("asking the distribution what it offers: apt-get update")
    if not succeeds(*APT, "update"):
        return
    there = offered()
    names = [name for name in missing(installed(), there) if name in there]
    say(f"installing, which takes minutes: apt-get install {' '.join(names) or '(nothing)'}")
    command = [*APT, "install", "-y", "--no-install-recommends"]
    for name in [] if succeeds(*command, *names) else names:
        succeeds(*command, name)
    UNOFFERED.parent.mkdir(exist_ok=True)
    UNOFFERED.write_text(" ".join(set(missing(installed(), there)) - there))


def main() -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-query")):
        return say("no apt-get: LLVM >= 15 (opt, llc, ld.lld) and libgomp are yours to install")
    lacking = missing(installed(), offered())
    if lacking:
        say(f"system packages that are missing: {' '.join(lacking)}")
    if lacking and "--no-install" in sys.argv:
        say("asked to install none of them")
    elif lacking and UNOFFERED.exists() and {*lacking} <= {*UNOFFERED.read_text().split()}:
        say(f"this distribution does not offer them; to ask it again, delete {UNOFFERED}")
    elif lacking and SUDO and not (shutil.which("sudo") and succeeds("true")):
        say("not root, and sudo is not usable without a password: none of them installed")
    elif lacking:
        install()
        lacking = missing(installed(), offered())
    later = f"going on without; to install later, as root: apt-get install {' '.join(lacking)}"
    say(later if lacking else "system packages: all there")


if __name__ == "__main__":
    main()
