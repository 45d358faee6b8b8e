"""A program that compiles CUDA C++ by NVRTC, the compiler in NVIDIA's library libnvrtc.

`toolchains/nvrtc.toml` runs it in a process of its own, since the compiler may crash or hang. It
needs the packages cuda-bindings and nvidia-cuda-nvrtc, no driver, and nothing else of refcomp::

    python nvrtc_program.py --version
    python nvrtc_program.py --list-gpu-code
    python nvrtc_program.py {cubin|ptx} INPUT -o OUTPUT [--headers=FILE] [OPTION...]

FILE is any header of CUDA, whose folder is searched for others. Options go to NVRTC. Its log goes
to stderr. The exit status is 0, or 1 with a reason on stderr.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str]) -> int:
    """Run the program, and return its exit status."""
    try:
        from cuda.bindings import nvrtc  # noqa: PLC0415
    except ImportError as error:
        print(f"cuda-bindings cannot be imported: {error}", file=sys.stderr)
        return 1
    try:
        if arguments == ["--version"]:
            major, minor = _called(nvrtc, nvrtc.nvrtcVersion())
            print(f"NVRTC {major}.{minor}")
        elif arguments == ["--list-gpu-code"]:
            archs = _called(nvrtc, nvrtc.nvrtcGetSupportedArchs())
            print("\n".join(f"sm_{arch}" for arch in archs))
        else:
            return _compile(nvrtc, arguments)
    # cuda-bindings raise RuntimeError if the library is not found.
    except (RuntimeError, OSError) as error:
        print(f"NVRTC failed: {error}", file=sys.stderr)
        return 1
    return 0


def _compile(nvrtc: Any, arguments: Sequence[str]) -> int:
    kind, source, _, target, *options = arguments
    path = Path(source)
    program = _called(
        nvrtc,
        nvrtc.nvrtcCreateProgram(path.read_bytes(), path.name.encode(), 0, [], []),
    )
    words = [word.encode() for word in _nvrtc_options(options)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
    log = _text(nvrtc, program, "ProgramLog").rstrip(b"\0")
    sys.stderr.write(log.decode(errors="replace"))
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        print(f"NVRTC failed: {status.name}", file=sys.stderr)
        return 1
    data = _text(nvrtc, program, kind.upper())
    # The text of PTX ends in a NUL.
    Path(target).write_bytes(data.rstrip(b"\0") if kind == "ptx" else data)
    return 0


def _nvrtc_options(options: Sequence[str]) -> list[str]:
    words = []
    for option in options:
        name, _, header = option.partition("=")
        if name != "--headers":
            words.append(option)
        elif header:
            folder = Path(header).parent
            words += [f"--include-path={folder}", f"--include-path={folder / 'cccl'}"]
    return words


def _text(nvrtc: Any, program: Any, name: str) -> bytes:
    size = _called(nvrtc, getattr(nvrtc, f"nvrtcGet{name}Size")(program))
    data = bytes(size)
    _called(nvrtc, getattr(nvrtc, f"nvrtcGet{name}")(program, data))
    return data


def _called(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    """Return the values of a call. Raise RuntimeError if its status is an error."""
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(status.name)
    return values[0] if len(values) == 1 else values


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
