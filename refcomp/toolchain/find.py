"""Find tools: absolute paths, all of one version, the newest that is complete.

A path may suggest a version, which decides only the order in which tools are asked. The answer of
a tool decides its version. The ToolchainError for a missing tool lists the places, the tools found
and the remedy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import (
    DataFile,
    Description,
    Tool,
    Version,
    VersionRule,
)
from refcomp.toolchain.places import (
    Candidate,
    describe_file_places,
    describe_places,
    environment_of,
    file_path,
    install_command,
    tool_candidates,
)
from refcomp.toolchain.versions import file_identity, read_versions, version_to_text


@dataclass(frozen=True, slots=True)
class FoundTools:
    """The needed tools of a toolchain."""

    version: Version  # of all tools
    paths: Mapping[str, str]  # key of a tool -> absolute path
    identity: str  # changes if a tool is replaced


@dataclass(slots=True)
class ToolSearch:
    """The result of a search, which grows while the search goes on."""

    versions: dict[str, dict[Version, str]]  # key of a tool -> version -> path
    refused: list[str]  # a text for each executable that cannot be used

    def best(self) -> Version | None:
        """Return the newest version in which every tool exists."""
        first, *others = self.versions.values()
        complete = set(first).intersection(*others)
        return max(complete, default=None)


# Results of searches, by description and environment.
_FOUND: dict[tuple[Description, tuple[str | None, ...]], FoundTools] = {}
_FOUND_FILES: dict[tuple[Description, str, tuple[str | None, ...]], str] = {}


def find_tools(description: Description) -> FoundTools:
    """Return the needed tools of `description`, in one version.

    The result is remembered within the process while the environment stays the same. Raises
    ToolchainError.
    """
    key = (description, environment_of(description))
    if key not in _FOUND:
        needed = description.needed_tools
        search = search_tools(description, needed)
        version = search.best()
        if version is None:
            raise _not_found(description, needed, search)
        paths = {tool: found[version] for tool, found in search.versions.items()}
        files = [file_identity(path) for path in paths.values()]
        identity = "\n".join([version_to_text(version), *files])
        _FOUND[key] = FoundTools(version, paths, identity)
    return _FOUND[key]


def find_tool(description: Description, key: str) -> str:
    """Return the path of a single tool, needed or not, in the version of the others."""
    found = find_tools(description)
    if key in found.paths:
        return found.paths[key]
    tool = description.tools[key]
    search = search_tools(description, [tool], stop_at=found.version)
    if found.version not in search.versions[key]:
        raise _not_found(description, [tool], search)
    return search.versions[key][found.version]


def find_file(description: Description, key: str) -> str:
    """Return the path of a data file, or raise ToolchainError."""
    memo = (description, key, environment_of(description))
    if memo not in _FOUND_FILES:
        file = description.files[key]
        path = file_path(file)
        if path is None:
            raise file_not_found(file)
        _FOUND_FILES[memo] = path
    return _FOUND_FILES[memo]


def file_not_found(file: DataFile) -> ToolchainError:
    """Return the error for a missing data file."""
    return ToolchainError(
        f"{file.key} was not found",
        where=describe_file_places(file),
        remedy=install_command(file.install),
    )


def search_tools(
    description: Description, tools: Sequence[Tool], stop_at: Version | None = None
) -> ToolSearch:
    """Ask candidates for their versions, newest first, until `tools` are complete."""
    search = ToolSearch({tool.key: {} for tool in tools}, [])
    for major, batch in _batches(tool_candidates(description, tools)):
        best = search.best()
        if best is not None:
            # The remaining candidates are expected to be older.
            is_newest = stop_at is None and best[0] >= major
            if is_newest or best == stop_at:
                break
        _ask(batch, description.version, search)
    return search


def _batches(
    candidates: Mapping[str, tuple[Candidate, ...]],
) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield (major version, its (tool, path) pairs), the newest first.

    The version is a guess from the path. Paths that do not suggest one come before all others.
    """
    unknown = 1 << 30  # greater than each real version
    grouped: dict[int, list[tuple[str, str]]] = {}
    for key, group in candidates.items():
        for candidate in group:
            major = unknown if candidate.major is None else candidate.major
            grouped.setdefault(major, []).append((key, candidate.path))
    for major in sorted(grouped, reverse=True):
        yield major, grouped[major]


def _ask(batch: list[tuple[str, str]], rule: VersionRule, search: ToolSearch) -> None:
    versions = read_versions([path for _, path in batch], rule)
    for key, path in batch:
        version = versions[path]
        if isinstance(version, str):
            search.refused.append(f"{path} {version}")
        elif reason := _why_refused(version, rule):
            search.refused.append(
                f"{path} is version {version_to_text(version)}, {reason}"
            )
        else:
            search.versions[key].setdefault(version, path)


def _why_refused(version: Version, rule: VersionRule) -> str:
    if version < rule.least:
        return f"but the oldest that is accepted is {version_to_text(rule.least)}"
    # "16" as the greatest takes 16.0.6 too.
    if rule.greatest is not None and version[: len(rule.greatest)] > rule.greatest:
        return f"but the newest that is accepted is {version_to_text(rule.greatest)}"
    return ""


def _not_found(
    description: Description, tools: Sequence[Tool], search: ToolSearch
) -> ToolchainError:
    names = ", ".join(tool.names[-1] for tool in tools)
    together = " of one version" if len(tools) > 1 else ""
    places = dict.fromkeys(describe_places(description, tool) for tool in tools)
    variables = [
        *description.look.variables,
        *(t.variable for t in tools if t.variable),
    ]
    return ToolchainError(
        f"no usable {names}{together} for the {description.name} toolchain",
        where="; ".join(places),
        why="; ".join(explain_search(tools, search)),
        remedy=f"{install_command(description.install)}; or set {' or '.join(variables)}",
    )


def explain_search(tools: Sequence[Tool], search: ToolSearch) -> Iterator[str]:
    """Describe in words which versions of each tool were found, and which were refused."""
    for tool in tools:
        versions = ", ".join(map(version_to_text, sorted(search.versions[tool.key])))
        yield f"{tool.names[-1]}: {f'found {versions}' if versions else 'none found'}"
    yield from search.refused
