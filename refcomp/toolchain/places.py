"""Candidate places of tools and data files on this machine, best first. Nothing is run.

If an environment variable is set, no other place is searched. Otherwise PATH is searched, then the
folders of the toolchain file. Relative and empty entries of PATH are ignored.
"""

import glob
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.toolchain.description import DataFile, Description, Tool

# Major versions above the least one that are searched by name.
_MAJORS_AHEAD = 15
# Major versions below the least one, so that a message can name what is too old.
_MAJORS_BEHIND = 3
_MAJOR_IN_NAME = re.compile(r"-(\d+)\Z")
_MAJOR_IN_PATH = re.compile(r"/llvm-?(\d+)[^/]*/")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An executable that may be the tool. `major` is a hint that its path gives."""

    path: str
    major: int | None


def environment_of(description: Description) -> tuple[str | None, ...]:
    """Return all parts of the environment on which a search depends."""
    variables = [
        "PATH",
        *description.look.variables,
        *(tool.variable for tool in description.tools.values()),
        *(name for file in description.files.values() for name in file.variables),
    ]
    return tuple(os.environ.get(variable) for variable in variables if variable)


def tool_candidates(
    description: Description, tools: Sequence[Tool]
) -> dict[str, tuple[Candidate, ...]]:
    """Return for each tool, by key, the possible executables: best place first, each file once."""
    listings = {folder: _listing(folder) for folder in _folders(description)}
    return {tool.key: _candidates(description, tool, listings) for tool in tools}


def _candidates(
    description: Description, tool: Tool, listings: Mapping[str, frozenset[str]]
) -> tuple[Candidate, ...]:
    if chosen := _value(tool.variable):
        return (Candidate(chosen, None),) if _is_executable(chosen) else ()
    majors = _majors(description)
    names = [name for pattern in tool.names for name in _fill_major(pattern, majors)]
    seen: dict[tuple[int, int], Candidate] = {}
    for folder, listing in listings.items():
        for name in names:
            if name not in listing:
                continue
            path = os.path.join(folder, name)
            if _is_executable(path) and (same := _file_number(path)) not in seen:
                seen[same] = Candidate(path, _guess_major(path))
    return tuple(seen.values())


def _listing(folder: str) -> frozenset[str]:
    # Far quicker than asking for each of the many versioned names.
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


def file_path(file: DataFile) -> str | None:
    """Return the path of the data file, or None."""
    return next(
        (path for pattern in _file_patterns(file) for path in _expand(pattern)), None
    )


def _file_patterns(file: DataFile) -> tuple[str, ...]:
    variable = _first_set(file.variables)
    if not variable:
        return file.patterns
    folder = glob.escape(_value(variable))
    return tuple(os.path.join(folder, below) for below in file.variables[variable])


def describe_places(description: Description, tool: Tool) -> str:
    """Describe for messages where `tool` was searched."""
    if chosen := _value(tool.variable):
        return f"{tool.variable}={chosen}"
    if variable := _first_set(description.look.variables):
        return f"{variable}={os.environ[variable]}"
    return ", ".join((f"PATH={os.environ.get('PATH', '')}", *description.look.folders))


def describe_file_places(file: DataFile) -> str:
    """Describe for messages where `file` was searched."""
    if variable := _first_set(file.variables):
        return (
            f"{variable}={os.environ[variable]}: {', '.join(file.variables[variable])}"
        )
    return ", ".join(_fill_places(pattern) for pattern in file.patterns)


def install_command(install: Mapping[str, str]) -> str:
    """Return the command that installs a tool or file on this distribution.

    The distribution is looked up by name and version, by name, by kinship; else the default is
    used.
    """
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    name = release.get("ID", "")
    kinds = [
        f"{name}-{release.get('VERSION_ID', '')}",
        name,
        *release.get("ID_LIKE", "").split(),
    ]
    return next(
        (install[kind] for kind in kinds if kind in install), install["default"]
    )


def _value(variable: str) -> str:
    chosen = os.environ.get(variable, "") if variable else ""
    return os.path.abspath(chosen) if chosen else ""


def _first_set(variables: Iterable[str]) -> str:
    return next((name for name in variables if os.environ.get(name)), "")


def _folders(description: Description) -> tuple[str, ...]:
    """Return all folders to search, in order, each real folder once."""
    variable = _first_set(description.look.variables)
    if variable:
        below = description.look.variables[variable]
        found = [
            os.path.normpath(os.path.join(_value(variable), folder)) for folder in below
        ]
    else:
        found = [
            *os.environ.get("PATH", "").split(os.pathsep),
            *_own_folders(description),
        ]
    seen: dict[tuple[int, int], str] = {}
    for folder in found:
        if os.path.isabs(folder) and os.path.isdir(folder):
            seen.setdefault(_file_number(folder), folder)
    return tuple(seen.values())


def _own_folders(description: Description) -> Iterator[str]:
    majors = _majors(description)
    for pattern in description.look.folders:
        for filled in _fill_major(pattern, majors):
            yield from _expand(filled)


def _majors(description: Description) -> range:
    rule = description.version
    newest = rule.greatest[0] if rule.greatest else rule.least[0] + _MAJORS_AHEAD
    return range(newest, max(0, rule.least[0] - _MAJORS_BEHIND - 1), -1)


def _fill_major(text: str, majors: range) -> tuple[str, ...]:
    if "{major}" not in text:
        return (text,)
    return tuple(text.replace("{major}", str(major)) for major in majors)


def _expand(pattern: str) -> list[str]:
    filled = _fill_places(pattern)
    if glob.has_magic(filled):
        return sorted(glob.glob(filled), reverse=True)
    return [filled] if os.path.exists(filled) else []


def _fill_places(pattern: str) -> str:
    multiarch = getattr(
        sys.implementation, "_multiarch", f"{platform.machine()}-linux-gnu"
    )
    return pattern.replace("{multiarch}", multiarch).replace("{prefix}", sys.prefix)


def _is_executable(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)


def _file_number(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _guess_major(path: str) -> int | None:
    match = _MAJOR_IN_NAME.search(path) or _MAJOR_IN_PATH.search(os.path.realpath(path))
    return int(match[1]) if match else None
