"""Report which tools of every toolchain are installed, and how to get the others."""

from contextlib import suppress
from dataclasses import dataclass

from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import (
    DataFile,
    Description,
    Tool,
    load_description,
    toolchain_names,
)
from refcomp.toolchain.find import (
    FoundTools,
    explain_search,
    find_tool,
    find_tools,
    search_tools,
)
from refcomp.toolchain.places import (
    describe_file_places,
    describe_places,
    file_path,
    install_command,
)
from refcomp.toolchain.versions import version_to_text


@dataclass(frozen=True, slots=True)
class ToolReport:
    """The state of one tool or file of a toolchain on this machine."""

    toolchain: str
    purpose: str  # of the toolchain
    name: str
    path: str  # '' if it was not found
    version: str  # '' if it is not known
    is_ok: bool  # it was found in an accepted version
    is_needed: bool
    reason: str  # why it cannot be used; '' if it can
    install: str  # the command that installs it


def diagnose() -> tuple[ToolReport, ...]:
    """Return a report on every tool and file of every toolchain, in the order of their files."""
    reports: list[ToolReport] = []
    for name in toolchain_names():
        description = load_description(name)
        found: FoundTools | None = None
        with suppress(ToolchainError):
            found = find_tools(description)
        for tool in description.tools.values():
            reports.append(_report_tool(description, tool, found))
        for file in description.files.values():
            reports.append(_report_file(description, file))
    return tuple(reports)


def _report_tool(
    description: Description, tool: Tool, found: FoundTools | None
) -> ToolReport:
    path, version, reason = _state(description, tool, found)
    return ToolReport(
        toolchain=description.name,
        purpose=description.purpose,
        name=tool.names[-1],
        path=path,
        version=version,
        is_ok=not reason,
        is_needed=tool.is_needed,
        reason=reason,
        install=install_command(description.install),
    )


def _state(
    description: Description, tool: Tool, found: FoundTools | None
) -> tuple[str, str, str]:
    """Return path and version of a tool, and the reason why it cannot be used."""
    if found is not None:
        try:
            return find_tool(description, tool.key), version_to_text(found.version), ""
        except ToolchainError as error:
            return "", "", f"{error.why}; sought in {error.where}"
    search = search_tools(description, [tool])
    version = search.best()
    if version is None:
        why = "; ".join(explain_search([tool], search))
        return "", "", f"{why}; sought in {describe_places(description, tool)}"
    path = search.versions[tool.key][version]
    alone = "no version has all the tools that this toolchain needs"
    return path, version_to_text(version), alone


def _report_file(description: Description, file: DataFile) -> ToolReport:
    path = file_path(file)
    return ToolReport(
        toolchain=description.name,
        purpose=description.purpose,
        name=file.key,
        path=path or "",
        version="",
        is_ok=path is not None,
        is_needed=file.is_needed,
        reason="" if path else f"not found; sought in {describe_file_places(file)}",
        install=install_command(file.install),
    )
