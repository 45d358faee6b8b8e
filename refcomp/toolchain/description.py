"""The contents of a toolchain file: tools, their places and versions, steps and installation.

The files are toolchains/*.toml. Ensures: a Description is complete and consistent. Every step
exists, and every hole of a step can be filled. Refuses with UserError, naming file and key.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from refcomp.foundation.errors import UserError
from refcomp.foundation.resources import toolchains_dir
from refcomp.toolchain.table import TomlTable, read_table

Version = tuple[int, ...]

HOLE = re.compile(r"\{(\w+)\}")
_BUILT_IN_HOLES = frozenset({"input", "output", "libraries", "triple", "entries"})
_VERSION = re.compile(r"\d+(\.\d+)*\Z")


@dataclass(frozen=True, slots=True)
class Tool:
    """A program.

    `names` may contain `{major}`. `variable` names an environment variable or is empty.
    """

    key: str
    names: tuple[str, ...]
    variable: str
    is_needed: bool


@dataclass(frozen=True, slots=True)
class Look:
    """Places to search for tools.

    If one of the environment `variables` is set, it names a folder, and only the given sub-folders
    of it are searched. Otherwise PATH is searched, then `folders`: absolute globs, which may
    contain `{major}`.
    """

    variables: Mapping[str, tuple[str, ...]]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VersionRule:
    """The question for a tool's version, and the accepted versions, both ends included."""

    arguments: tuple[str, ...]
    pattern: re.Pattern[str]
    least: Version
    greatest: Version | None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A library or folder of files, which is found but not run.

    If one of the environment `variables` is set, it names a folder, and only the given globs below
    it are searched. Otherwise `patterns` are searched, which are absolute globs.
    """

    key: str
    patterns: tuple[str, ...]
    variables: Mapping[str, tuple[str, ...]]
    is_needed: bool
    is_always_linked: bool
    install: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Option:
    """A target option, which fills the hole of its name.

    `listing` is a command that prints the values that a tool accepts; `known` matches one of them.
    It is empty if values are not checked. The meaning of `host_values` depends on the machine.
    """

    key: str
    default: str
    listing: tuple[str, ...]
    known: re.Pattern[str]
    host_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One run of a tool: an argument list with holes, and the suffix of the file that it writes.

    Holes are `{input}`, `{output}`, `{triple}` (the host's), `{entries}` (the functions to keep,
    with commas), a tool, an option, and `{libraries}`, which must be an argument of its own. A
    step that `is_for_libraries` is skipped if the text requires none. `before` has further
    arguments for tools older than a major version.
    """

    key: str
    arguments: tuple[str, ...]
    suffix: str
    is_for_libraries: bool = False
    before: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def for_version(self, version: Version) -> "BuildStep":
        """Return the step for tools of a version."""
        further = [
            argument
            for major, more in self.before
            if version[0] < major
            for argument in more
        ]
        return replace(self, arguments=(*self.arguments, *further))


@dataclass(frozen=True, slots=True)
class BuildOutput:
    """One output of `compile_source`: its steps, and the format of the last step's file."""

    format: str
    steps: tuple[BuildStep, ...]

    def steps_for(self, libraries: Collection[str]) -> tuple[BuildStep, ...]:
        """Return the steps for a text that requires `libraries`."""
        return tuple(
            step for step in self.steps if libraries or not step.is_for_libraries
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """The reading of stderr: the line of the input, phrases that mean failure, and remedies."""

    line: re.Pattern[str]
    phrases: tuple[str, ...]
    remedies: tuple[tuple[re.Pattern[str], str], ...] = ()

    def remedy(self, stderr: str) -> str | None:
        """Return the remedy for the message of a tool, if one is known."""
        return next(
            (text for pattern, text in self.remedies if pattern.search(stderr)), None
        )


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """One toolchain file. `input` is the name of the file to which a Source is written.

    It is hashed by identity, so that results of a search can be cached for it.
    """

    name: str
    path: Path
    purpose: str
    language: str
    input: str
    tools: Mapping[str, Tool]
    version: VersionRule
    look: Look
    files: Mapping[str, DataFile]
    options: Mapping[str, Option]
    steps: Mapping[str, BuildStep]
    outputs: Mapping[str, BuildOutput]
    failures: Failures
    install: Mapping[str, str]

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """Return the tools without which the toolchain is useless; all tools if none is marked."""
        needed = tuple(tool for tool in self.tools.values() if tool.is_needed)
        return needed or tuple(self.tools.values())


def toolchain_names() -> tuple[str, ...]:
    """Return the names of all toolchain files, sorted."""
    return tuple(sorted(path.stem for path in toolchains_dir().glob("*.toml")))


@cache
def load_description(name: str) -> Description:
    """Return the toolchain called `name`.

    Raises:
        UserError: it does not exist, or its file is malformed.
    """
    path = toolchains_dir() / f"{name}.toml"
    if not name.isidentifier() or not path.is_file():
        raise UserError(
            f"{name!r} is not a toolchain",
            where=str(toolchains_dir()),
            remedy=f"use one of {', '.join(toolchain_names())}",
        )
    return read_description(path)


def read_description(path: Path) -> Description:
    """Return the Description in a TOML file."""
    top = read_table(path)
    steps = {key: _read_step(key, table) for key, table in top.tables("steps")}
    description = Description(
        name=path.stem,
        path=path,
        purpose=top.text("purpose"),
        language=top.text("language", ""),
        input=top.text("input", "input"),
        tools={key: _read_tool(key, table) for key, table in top.tables("tools")},
        version=_read_version_rule(top.table("version")),
        look=_read_look(top.table("look")),
        files={key: _read_file(key, table) for key, table in top.tables("files")},
        options={key: _read_option(key, table) for key, table in top.tables("options")},
        steps=steps,
        outputs={
            key: _read_output(table, steps) for key, table in top.tables("outputs")
        },
        failures=_read_failures(top.table("failures")),
        install=_read_install(top),
    )
    top.close()
    _check_holes(top, description)
    return description


def _read_tool(key: str, table: TomlTable) -> Tool:
    tool = Tool(
        key,
        table.texts("names"),
        table.text("variable", ""),
        table.flag("needed", True),
    )
    table.close()
    if not tool.names:
        raise table.refuse("names", "must not be empty")
    return tool


def _read_version_rule(table: TomlTable) -> VersionRule:
    rule = VersionRule(
        arguments=table.texts("arguments"),
        pattern=_read_pattern(table, "pattern"),
        least=_read_version(table, "least"),
        greatest=_read_version(table, "greatest") if "greatest" in table else None,
    )
    table.close()
    if rule.pattern.groups != 1:
        raise table.refuse("pattern", "must have one group, the version")
    return rule


def _read_version(table: TomlTable, key: str) -> Version:
    text = table.text(key)
    if not _VERSION.match(text):
        raise table.refuse(
            key, f"must be a version such as '15' or '15.0.6', not {text!r}"
        )
    return tuple(map(int, text.split(".")))


def _read_pattern(
    table: TomlTable, key: str, default: str | None = None
) -> re.Pattern[str]:
    text = table.text(key, default)
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise table.refuse(key, f"is not a regular expression: {error}") from error


def _read_look(table: TomlTable) -> Look:
    look = Look(table.lists("variables"), table.texts("folders", ()))
    table.close()
    return look


def _read_file(key: str, table: TomlTable) -> DataFile:
    file = DataFile(
        key=key,
        patterns=table.texts("patterns"),
        variables=table.lists("variables"),
        is_needed=table.flag("needed", True),
        is_always_linked=table.flag("always_linked", False),
        install=_read_install(table),
    )
    table.close()
    return file


def _read_install(table: TomlTable) -> dict[str, str]:
    install = table.mapping("install")
    if "default" not in install:
        raise table.refuse("install.default", "is missing")
    return install


def _read_option(key: str, table: TomlTable) -> Option:
    option = Option(
        key=key,
        default=table.text("default"),
        listing=table.texts("listing", ()),
        known=_read_pattern(table, "known", ""),
        host_values=table.texts("host_values", ()),
    )
    table.close()
    return option


def _read_step(key: str, table: TomlTable) -> BuildStep:
    for_libraries = table.flag("for_libraries", False)
    before = tuple(
        (_read_major(table, k), more) for k, more in table.lists("before").items()
    )
    step = BuildStep(
        key, table.texts("arguments"), table.text("suffix"), for_libraries, before
    )
    table.close()
    if not step.arguments:
        raise table.refuse("arguments", "must not be empty")
    return step


def _read_major(table: TomlTable, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise table.refuse(f"before.{text}", "must be a major version, a number")
    return int(text)


def _read_output(table: TomlTable, steps: Mapping[str, BuildStep]) -> BuildOutput:
    names = table.texts("steps")
    for name in names:
        if name not in steps:
            raise table.refuse("steps", f"names {name!r}, which is not among the steps")
    output = BuildOutput(table.text("format"), tuple(steps[name] for name in names))
    table.close()
    return output


def _read_failures(table: TomlTable) -> Failures:
    # A pattern that never matches, for toolchains whose tools name no line.
    line = _read_pattern(table, "line", r"(?!)()")
    phrases = table.texts("phrases", ())
    known = (remedy for _, remedy in table.tables("remedies"))
    failures = Failures(line, phrases, tuple(map(_read_remedy, known)))
    table.close()
    if failures.line.groups != 1:
        raise table.refuse("line", "must have one group, the line number")
    return failures


def _read_remedy(table: TomlTable) -> tuple[re.Pattern[str], str]:
    remedy = _read_pattern(table, "says"), table.text("remedy")
    table.close()
    return remedy


def _check_holes(top: TomlTable, description: Description) -> None:
    known = _BUILT_IN_HOLES | set(description.tools) | set(description.options)
    for key, arguments in _argument_lists(description):
        for hole in HOLE.findall(" ".join(arguments)):
            if hole not in known:
                raise top.refuse(key, f"has a hole {{{hole}}} that nothing fills")


def _argument_lists(description: Description) -> Iterable[tuple[str, tuple[str, ...]]]:
    for step in description.steps.values():
        yield f"steps.{step.key}.arguments", step.arguments
        for major, more in step.before:
            yield f"steps.{step.key}.before.{major}", more
    for option in description.options.values():
        yield f"options.{option.key}.listing", option.listing
