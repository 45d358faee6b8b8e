"""The contents of a toolchain file: tools, their places and versions, steps and installation.

The files are toolchains/*.toml. Ensures: a Description is complete and consistent. Every step
exists, and every hole of a step can be filled. Refuses with UserError, naming file and key.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.resources import toolchains_dir
from refcomp.toolchain.table import TomlTable, read_table

Version = tuple[int, ...]

HOLE = re.compile(r"\{(\w+)\}")
_BUILT_IN_HOLES = frozenset({"input", "output", "libraries", "triple", "entries"})
_VERSION = re.compile(r"\d+(\.\d+)*\Z")


@dataclass(frozen=True, slots=True)
class Tool:
    """A program."""

    key: str  # its name in the file
    names: tuple[str, ...]  # of the executable; may contain `{major}`
    variable: str  # the environment variable that names the executable; '' for none
    is_needed: bool  # if False, only some texts need it
    # If True, it is the Python that runs refcomp, and no other place is searched.
    is_own_python: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Places to search for tools."""

    # Environment variable -> sub-folders. If it is set, it names a folder, and only these
    # sub-folders of it are searched.
    variables: Mapping[str, tuple[str, ...]]
    # Otherwise PATH is searched, then these absolute globs, which may contain `{major}`.
    folders: tuple[str, ...]
    # Environment variable -> sub-folders that are searched before PATH if it is set.
    first: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VersionRule:
    """The question for a tool's version, and the accepted versions."""

    arguments: tuple[str, ...]  # for which a tool prints its version
    pattern: re.Pattern[str]  # its group is the version
    least: Version  # included
    greatest: Version | None  # included; `16` includes 16.0.6


@dataclass(frozen=True, slots=True)
class DataFile:
    """A library or folder of files, which is found but not run."""

    key: str  # its name in the file
    patterns: tuple[str, ...]  # absolute globs, searched if no variable is set
    # Environment variable -> globs. If it is set, it names a folder, and only these globs below
    # it are searched.
    variables: Mapping[str, tuple[str, ...]]
    is_needed: bool  # if False, the toolchain works without it
    is_always_linked: bool  # also to texts that do not require it
    install: Mapping[str, str]  # distribution -> command; has the key `default`


@dataclass(frozen=True, slots=True)
class Option:
    """A target option, which fills the hole of its name."""

    key: str
    default: str
    # A command that prints the accepted values; () for no check.
    listing: tuple[str, ...]
    known: re.Pattern[str]  # matches one value in the output of `listing`
    # Values whose meaning depends on this machine: `native`.
    host_values: tuple[str, ...]
    # If True, the value is a list with commas, and an argument with the hole is repeated for each.
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One run of a tool.

    Holes of arguments are `{input}` (several files if the step joins parts), `{output}`,
    `{triple}`, `{entries}` (the functions to keep, with commas), a tool, an option, a data file,
    and `{libraries}`. The last must be an argument of its own. The triple is that of the option
    `mtriple`, or else the host's. A data file that is not found is ''. In all argument lists
    `{package}` is the folder of refcomp.
    """

    key: str
    arguments: tuple[str, ...]  # with holes; the first is the tool
    suffix: str  # of the file that it writes
    is_for_libraries: bool = False  # if True, it is skipped for texts that require none
    # (major version, further arguments for tools older than it)
    before: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def for_version(self, version: Version) -> "BuildStep":
        """Return the step for tools of a version."""
        arguments = list(self.arguments)
        for major, more in self.before:
            if version[0] < major:
                arguments += more
        return replace(self, arguments=tuple(arguments))


@dataclass(frozen=True, slots=True)
class BuildOutput:
    """One output of `compile_source`."""

    format: str  # of the last step's file, as in `Binary.format`
    steps: tuple[BuildStep, ...]
    # If True, the stderr of the last step is a report that `compile_with_report` returns.
    has_report: bool = False
    # If True, the last step takes the results of the steps before, of one text or of several.
    joins_parts: bool = False

    @property
    def of_part(self) -> "BuildOutput":
        """Return the output of one of several texts: all steps but the last."""
        assert self.joins_parts
        steps = self.steps[:-1]
        return BuildOutput(steps[-1].suffix, steps)

    @property
    def of_all_parts(self) -> "BuildOutput":
        """Return the output of what `of_part` made of several texts: the last step."""
        assert self.joins_parts
        return replace(self, steps=self.steps[-1:])

    def steps_for(self, libraries: Collection[str]) -> tuple[BuildStep, ...]:
        """Return the steps for a text that requires `libraries`."""
        return tuple(
            step for step in self.steps if libraries or not step.is_for_libraries
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """The rules for reading the stderr of a tool."""

    line: re.Pattern[str]  # its group is the number of the guilty line of the input
    phrases: tuple[str, ...]  # mean failure, even if the exit status is 0
    # (pattern of a message, remedy)
    remedies: tuple[tuple[re.Pattern[str], str], ...] = ()

    def remedy(self, stderr: str) -> str | None:
        """Return the remedy for the message of a tool, if one is known."""
        for pattern, text in self.remedies:
            if pattern.search(stderr):
                return text
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """One toolchain file.

    It is hashed by identity, so that results of a search can be cached for it.
    """

    name: str
    path: Path  # of the toolchain file
    purpose: str  # for `refcomp doctor`
    language: str  # of the sources that it takes; '' if it takes none
    input: str  # name of the file to which a Source is written
    tools: Mapping[str, Tool]  # this and the following mappings are by key
    version: VersionRule  # for all tools
    look: Look
    files: Mapping[str, DataFile]
    options: Mapping[str, Option]
    steps: Mapping[str, BuildStep]
    outputs: Mapping[str, BuildOutput]
    failures: Failures
    install: Mapping[str, str]  # of the tools: distribution -> command
    # Environment variables that the tools read themselves, and that may change results.
    environment: tuple[str, ...] = ()

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
            remedy=advise(
                name, toolchain_names(), f"use one of {', '.join(toolchain_names())}"
            ),
        )
    return read_description(path)


def read_description(path: Path) -> Description:
    """Return the Description in a TOML file."""
    top = read_table(path)
    steps = {key: _read_step(key, table) for key, table in top.tables("steps")}
    places = top.table("look")
    look = Look(
        places.lists("variables"), places.texts("folders", ()), places.lists("first")
    )
    places.close()
    description = Description(
        name=path.stem,
        path=path,
        purpose=top.text("purpose"),
        language=top.text("language", ""),
        input=top.text("input", "input"),
        tools={key: _read_tool(key, table) for key, table in top.tables("tools")},
        version=_read_version_rule(top.table("version")),
        look=look,
        files={key: _read_file(key, table) for key, table in top.tables("files")},
        options={key: _read_option(key, table) for key, table in top.tables("options")},
        steps=steps,
        outputs={
            key: _read_output(table, steps) for key, table in top.tables("outputs")
        },
        failures=_read_failures(top.table("failures")),
        install=_read_install(top),
        environment=top.texts("environment", ()),
    )
    # Every known key was read, so a key that is left is misspelt.
    top.close()
    known = _BUILT_IN_HOLES | set(description.tools) | set(description.options)
    known |= set(description.files)
    for key, arguments in _argument_lists(description):
        for hole in HOLE.findall(" ".join(arguments)):
            if hole not in known:
                raise top.refuse(key, f"has a hole {{{hole}}} that nothing fills")
    return description


def _read_tool(key: str, table: TomlTable) -> Tool:
    tool = Tool(
        key,
        table.texts("names"),
        table.text("variable", ""),
        table.flag("needed", True),
        table.flag("own_python", False),
    )
    table.close()
    if not tool.names:
        raise table.refuse("names", "must not be empty")
    return tool


def _read_version_rule(table: TomlTable) -> VersionRule:
    rule = VersionRule(
        arguments=_in_package(table.texts("arguments")),
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


def _in_package(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return arguments that may name programs of refcomp, with the folder of the package."""
    folder = str(Path(__file__).parents[1])
    return tuple(argument.replace("{package}", folder) for argument in arguments)


def _read_option(key: str, table: TomlTable) -> Option:
    option = Option(
        key=key,
        default=table.text("default"),
        listing=_in_package(table.texts("listing", ())),
        known=_read_pattern(table, "known", ""),
        host_values=table.texts("host_values", ()),
        is_list=table.flag("list", False),
    )
    table.close()
    return option


def _read_step(key: str, table: TomlTable) -> BuildStep:
    before: list[tuple[int, tuple[str, ...]]] = []
    for major, more in table.lists("before").items():
        # str.isdigit alone accepts digits that int refuses.
        if not (major.isascii() and major.isdigit()):
            raise table.refuse(f"before.{major}", "must be a major version, a number")
        before.append((int(major), more))
    step = BuildStep(
        key=key,
        arguments=_in_package(table.texts("arguments")),
        suffix=table.text("suffix"),
        is_for_libraries=table.flag("for_libraries", False),
        before=tuple(before),
    )
    table.close()
    if not step.arguments:
        raise table.refuse("arguments", "must not be empty")
    return step


def _read_output(table: TomlTable, steps: Mapping[str, BuildStep]) -> BuildOutput:
    names = table.texts("steps")
    for name in names:
        if name not in steps:
            raise table.refuse("steps", f"names {name!r}, which is not among the steps")
    output = BuildOutput(
        table.text("format"),
        tuple(steps[name] for name in names),
        table.flag("report", False),
        table.flag("joins_parts", False),
    )
    table.close()
    if output.joins_parts:
        _check_joining(output, table)
    return output


def _check_joining(output: BuildOutput, table: TomlTable) -> None:
    if len(output.steps) < 2 or "{input}" not in output.steps[-1].arguments:
        raise table.refuse(
            "joins_parts",
            "needs a last step with the argument {input}, and a step before it",
        )
    if output.has_report:
        raise table.refuse("joins_parts", "does not go with a report")


def _read_failures(table: TomlTable) -> Failures:
    # A pattern that never matches, for toolchains whose tools name no line.
    line = _read_pattern(table, "line", r"(?!)()")
    phrases = table.texts("phrases", ())
    remedies = []
    for _, known in table.tables("remedies"):
        remedies.append((_read_pattern(known, "says"), known.text("remedy")))
        known.close()
    failures = Failures(line, phrases, tuple(remedies))
    table.close()
    if failures.line.groups != 1:
        raise table.refuse("line", "must have one group, the line number")
    return failures


def _argument_lists(description: Description) -> Iterable[tuple[str, tuple[str, ...]]]:
    for step in description.steps.values():
        yield f"steps.{step.key}.arguments", step.arguments
        for major, more in step.before:
            yield f"steps.{step.key}.before.{major}", more
    for option in description.options.values():
        yield f"options.{option.key}.listing", option.listing
