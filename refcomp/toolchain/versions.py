"""The versions of tools, asked once for each file and then remembered in the cache.

A file counts as unchanged while its path, size and modification time stay. Several tools are asked
at the same time, because most of the 15 ms that each takes is loading.
"""

import os
import sys
from collections.abc import Iterable

from refcomp.foundation.cache import Cache, Label, default_cache
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import Version, VersionRule
from refcomp.toolchain.places import package_folders
from refcomp.toolchain.run import Completed, finish_tool, start_tool, tool_timeout_s

# No tool needs longer to print its version, however long its work may take.
_TIMEOUT_S = 20.0
_MAX_SHOWN = 200  # characters of an answer without a version, in messages


def file_identity(path: str) -> str:
    """Return a text that changes if the file at `path` is replaced.

    What a Python can do also depends on the packages that are installed for it.
    """
    status = os.stat(path)
    identity = f"{path} {status.st_size} {status.st_mtime_ns}"
    if path == sys.executable:
        identity += f" {os.environ.get('PYTHONPATH', '')}"
        for folder in filter(os.path.isdir, package_folders()):
            identity += f" {os.stat(folder).st_mtime_ns}"
    return identity


def read_versions(paths: Iterable[str], rule: VersionRule) -> dict[str, Version | str]:
    """Return for each path its version, or the reason in words why it has none."""
    versions: dict[str, Version | str] = {}
    for path, text in _texts(paths, rule).items():
        if match := rule.pattern.search(text):
            versions[path] = tuple(int(part) for part in match[1].split("."))
        else:
            answer = " ".join(text.split())[:_MAX_SHOWN] or "it said nothing"
            versions[path] = f"does not print its version ({answer})"
    return versions


def version_text(path: str, rule: VersionRule) -> str:
    """Return all output of the tool when it is asked for its version."""
    return _texts([path], rule)[path]


def version_to_text(version: Version) -> str:
    """Return a version as text, such as `19.1.7`."""
    return ".".join(map(str, version))


def _texts(paths: Iterable[str], rule: VersionRule) -> dict[str, str]:
    cache = default_cache()
    keys = {
        path: Cache.key("version", file_identity(path), *rule.arguments)
        for path in paths
    }
    known = {path: cache.get(key) for path, key in keys.items()}
    asked = _ask([path for path, text in known.items() if text is None], rule)
    for path, completed in asked.items():
        known[path] = _answer(completed)
        # A failure may be temporary.
        if isinstance(completed, Completed) and completed.status == 0:
            cache.put(keys[path], _answer(completed), Label("version", path))
    return {
        path: (text or b"").decode(errors="replace") for path, text in known.items()
    }


def _ask(paths: list[str], rule: VersionRule) -> dict[str, Completed | ToolchainError]:
    running = {}  # all at the same time
    answers: dict[str, Completed | ToolchainError] = {}
    for path in paths:
        try:
            running[path] = start_tool([path, *rule.arguments])
        except ToolchainError as error:
            answers[path] = error
    for path, process in running.items():
        try:
            answers[path] = finish_tool(process, min(_TIMEOUT_S, tool_timeout_s()))
        except ToolchainError as error:
            answers[path] = error
    return answers


def _answer(completed: Completed | ToolchainError) -> bytes:
    if isinstance(completed, ToolchainError):
        return f"{completed.what}: {completed.why or ''}".encode()
    if completed.status != 0:
        return f"exit status {completed.status}: {completed.stderr}".encode()
    return completed.stdout
