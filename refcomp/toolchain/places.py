"""Candidate places of tools and data files on this machine, best first. Nothing is run.

If an environment variable is set, no other place is searched. Otherwise PATH is searched, then the
folders of the toolchain file. Relative and empty entries of PATH are ignored.
"""

import glob
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
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
    """An executable that may be the tool."""

    path: str  # absolute
    major: int | None  # the version that its path suggests


def environment_of(description: Description) -> tuple[str | None, ...]:
    """Return all parts of the environment on which a search depends."""
    return tuple(os.environ.get(variable) for variable in variables_of(description))


def variables_of(description: Description) -> tuple[str, ...]:
    """Return the names of all variables on which a search depends."""
    variables = [
        "PATH",
        *description.look.variables,
        *description.look.first,
        *(tool.variable for tool in description.tools.values()),
        *(name for file in description.files.values() for name in file.variables),
        *("PYTHONPATH" for tool in description.tools.values() if tool.is_own_python),
    ]
    return tuple(variable for variable in variables if variable)


def environment_read_by_tools(description: Description) -> dict[str, str]:
    """Return the variables that are set among those that the tools read themselves."""
    return {
        name: os.environ[name] for name in description.environment if name in os.environ
    }


def tool_candidates(
    description: Description, tools: Sequence[Tool]
) -> dict[str, tuple[Candidate, ...]]:
    """Return for each tool, by key, the possible executables: best place first, each file once."""
    # Listing a folder is far quicker than asking for each of the many versioned names.
    listings: dict[str, frozenset[str]] = {}
    for folder in _folders(description):
        with suppress(OSError):
            listings[folder] = frozenset(os.listdir(folder))
    return {tool.key: _candidates(description, tool, listings) for tool in tools}


def _candidates(
    description: Description, tool: Tool, listings: Mapping[str, frozenset[str]]
) -> tuple[Candidate, ...]:
    if chosen := _value(tool.variable):
        return (Candidate(chosen, None),) if _is_executable(chosen) else ()
    if tool.is_own_python:
        return (Candidate(sys.executable, None),) if sys.executable else ()
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


def file_path(file: DataFile) -> str | None:
    """Return the path of the data file, or None."""
    for pattern in places_of_file(file):
        for path in _matches(pattern):
            return path
    return None


def places_of_file(file: DataFile) -> list[str]:
    """Return the absolute globs that are searched for a data file, in order."""
    patterns = list(file.patterns)
    if variable := _first_set(file.variables):
        folder = glob.escape(_value(variable))
        patterns = [os.path.join(folder, below) for below in file.variables[variable]]
    return [filled for pattern in patterns for filled in _fill_places(pattern)]


def describe_places(description: Description, tool: Tool) -> str:
    """Describe for messages where `tool` was searched."""
    if chosen := _value(tool.variable):
        return f"{tool.variable}={chosen}"
    if variable := _first_set(description.look.variables):
        return f"{variable}={os.environ[variable]}"
    if tool.is_own_python:
        return f"the Python that runs refcomp, {sys.executable or 'which is not known'}"
    first = [
        f"{name}={os.environ[name]}" for name in description.look.first if _value(name)
    ]
    path = f"PATH={os.environ.get('PATH', '')}"
    return ", ".join((*first, path, *description.look.folders))


def describe_file_places(file: DataFile) -> str:
    """Describe for messages where `file` was searched."""
    if variable := _first_set(file.variables):
        return (
            f"{variable}={os.environ[variable]}: {', '.join(file.variables[variable])}"
        )
    return ", ".join(
        place for pattern in file.patterns for place in _fill_places(pattern)
    )


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
    version = release.get("VERSION_ID", "")
    related = release.get("ID_LIKE", "").split()
    for kind in (f"{name}-{version}", name, *related):
        if kind in install:
            return install[kind]
    return install["default"]


def _value(variable: str) -> str:
    chosen = os.environ.get(variable, "") if variable else ""
    return os.path.abspath(chosen) if chosen else ""


def _first_set(variables: Iterable[str]) -> str:
    return next((name for name in variables if os.environ.get(name)), "")


def _folders(description: Description) -> tuple[str, ...]:
    """Return all folders to search, in order, each real folder once."""
    seen: dict[tuple[int, int], str] = {}
    for pattern in folders_in_order(description):
        for folder in _matches(pattern):
            if os.path.isdir(folder):
                seen.setdefault(_file_number(folder), folder)
    return tuple(seen.values())


def folders_in_order(description: Description) -> list[str]:
    """Return the absolute globs of all folders to search, in order."""
    variable = _first_set(description.look.variables)
    if variable:
        return _folders_below(variable, description.look.variables[variable])
    found: list[str] = []
    for name, folders in description.look.first.items():
        if _value(name):
            found += _folders_below(name, folders)
    # An empty or relative entry of PATH would depend on the current folder.
    path = os.environ.get("PATH", "").split(os.pathsep)
    found += [glob.escape(folder) for folder in path if os.path.isabs(folder)]
    majors = _majors(description)
    for pattern in description.look.folders:
        for filled in _fill_major(pattern, majors):
            found += _fill_places(filled)
    return found


def _folders_below(variable: str, folders: Iterable[str]) -> list[str]:
    root = _value(variable)
    return [
        glob.escape(os.path.normpath(os.path.join(root, below))) for below in folders
    ]


def _majors(description: Description) -> range:
    rule = description.version
    newest = rule.greatest[0] if rule.greatest else rule.least[0] + _MAJORS_AHEAD
    return range(newest, max(0, rule.least[0] - _MAJORS_BEHIND - 1), -1)


def _fill_major(text: str, majors: range) -> tuple[str, ...]:
    if "{major}" not in text:
        return (text,)
    return tuple(text.replace("{major}", str(major)) for major in majors)


def _matches(pattern: str) -> list[str]:
    """Return the existing paths that match a glob, the newest version first."""
    if glob.has_magic(pattern):
        return sorted(glob.glob(pattern), reverse=True)
    return [pattern] if os.path.exists(pattern) else []


def _fill_places(pattern: str) -> list[str]:
    default = f"{platform.machine()}-linux-gnu"
    # The name of Debian's folder for libraries, such as x86_64-linux-gnu.
    multiarch = getattr(sys.implementation, "_multiarch", default)
    filled = pattern.replace("{multiarch}", multiarch).replace("{prefix}", sys.prefix)
    if "{packages}" not in filled:
        return [filled]
    return [
        filled.replace("{packages}", glob.escape(each)) for each in package_folders()
    ]


def package_folders() -> list[str]:
    """Return the folders in which pip installs packages, as far as this Python searches them."""
    names = ("site-packages", "dist-packages")
    return [path for path in sys.path if os.path.basename(path) in names]


def _is_executable(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)


def _file_number(path: str) -> tuple[int, int]:
    """Return a number that is equal for all paths of a file."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _guess_major(path: str) -> int | None:
    # Such as clang-16, or a link to /usr/lib/llvm-16/bin/clang.
    match = _MAJOR_IN_NAME.search(path) or _MAJOR_IN_PATH.search(os.path.realpath(path))
    return int(match[1]) if match else None
