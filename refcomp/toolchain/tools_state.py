"""The identity of the tools of toolchains, with all that it depends on.

So the identity can be remembered between processes without searching, and without this room.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import Description, load_description
from refcomp.toolchain.find import find_tools
from refcomp.toolchain.places import (
    environment_read_by_tools,
    file_path,
    folders_in_order,
    package_folders,
    places_of_file,
    variables_of,
)
from refcomp.toolchain.versions import file_identity


@dataclass(frozen=True, slots=True)
class ToolsState:
    """The identity of tools, and what to look at to know that it still holds."""

    identity: str  # '' if no toolchain is complete
    variables: tuple[str, ...]  # of the environment
    paths: tuple[str, ...]  # of files and folders, which need not exist


def tools_state(names: Sequence[str]) -> ToolsState:
    """Return the identity of the tools and files of several toolchains together."""
    identities: list[object] = []
    variables: dict[str, None] = {}
    paths: dict[str, None] = {}
    is_complete = False
    for name in names:
        description = load_description(name)
        files = [path for path in map(file_path, description.files.values()) if path]
        found: tuple[str, ...] = ()
        identity = ""
        try:
            tools = find_tools(description)
            found = tuple(tools.paths.values())
            identity = tools.identity
            is_complete = True
        except ToolchainError:
            pass
        read = sorted(environment_read_by_tools(description).items())
        identities.append((name, identity, list(map(file_identity, files)), read))
        variables.update(dict.fromkeys(_variables(description)))
        paths.update(dict.fromkeys([*_places(description), *found, *files]))
    text = repr(identities) if is_complete else ""
    return ToolsState(text, tuple(variables), tuple(paths))


def _variables(description: Description) -> Iterator[str]:
    yield from variables_of(description)
    yield from description.environment


def _places(description: Description) -> Iterator[str]:
    """Yield all paths whose change may change what is found."""
    yield from _with_parents(folders_in_order(description))
    for file in description.files.values():
        yield from _with_parents(places_of_file(file))
    for tool in description.tools.values():
        if chosen := os.environ.get(tool.variable, "") if tool.variable else "":
            yield os.path.abspath(chosen)
    if any(tool.is_own_python for tool in description.tools.values()):
        yield from package_folders()


def _with_parents(patterns: Iterable[str]) -> Iterator[str]:
    """Yield paths; for a glob its matches, and the folders in which other matches may appear."""
    for pattern in patterns:
        if not glob.has_magic(pattern):
            yield pattern
            continue
        yield from _with_parents([os.path.dirname(pattern)])
        yield from glob.glob(pattern)
