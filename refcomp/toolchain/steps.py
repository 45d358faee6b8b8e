"""Run the steps of a toolchain on a text, in a private folder that is kept on failure.

If $REFCOMP_KEEP names a folder, the run is also kept there (`refcomp.toolchain.keep`).

Refuses with ToolchainError a step that fails, hangs, ignores an option or writes no output. The
message has the command, its stderr and the line of the input that it names.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError
from refcomp.foundation.private_folder import private_folder
from refcomp.toolchain.description import HOLE, BuildOutput, BuildStep, Description
from refcomp.toolchain.keep import keep_run
from refcomp.toolchain.run import Completed, ToolRunner

_LIBRARIES = "{libraries}"


def write_input(path: Path, data: bytes) -> Path:
    """Write the input of a tool. Raise ToolchainError if the disk is full."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ToolchainError(
            f"{path.name} cannot be written",
            where=str(path.parent),
            why=str(error),
            remedy="free some space, or set TMPDIR to a folder with more",
        ) from error
    return path


def fill_arguments(
    arguments: tuple[str, ...],
    holes: Mapping[str, str | tuple[str, ...]],
    libraries: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return the argument list with its holes filled. `{libraries}` becomes several arguments.

    An argument whose hole has several values is repeated for each of them.
    """
    filled: list[str] = []
    for argument in arguments:
        if argument == _LIBRARIES:
            filled += libraries
        else:
            filled += _fill(argument, holes)
    return tuple(filled)


def _fill(argument: str, holes: Mapping[str, str | tuple[str, ...]]) -> Iterator[str]:
    values = {name: holes[name] for name in HOLE.findall(argument)}
    lists = [value for value in values.values() if isinstance(value, tuple)]
    for index in range(max(map(len, lists), default=1)):
        yield _fill_once(argument, values, index)


def _fill_once(
    argument: str, values: Mapping[str, str | tuple[str, ...]], index: int
) -> str:
    def value_of(hole: re.Match[str]) -> str:
        value = values[hole[1]]
        return value if isinstance(value, str) else value[index]

    return HOLE.sub(value_of, argument)


@dataclass(frozen=True, slots=True)
class StepsResult:
    """The result of the steps of an output."""

    data: bytes  # that the last step wrote to its file
    report: bytes  # that it wrote to stderr


def run_steps(
    description: Description,
    output: BuildOutput,
    source: Source,
    holes: Mapping[str, str | tuple[str, ...]],
    *,
    libraries: tuple[str, ...] = (),
    objects: Sequence[bytes] = (),
    runner: ToolRunner | None = None,
) -> StepsResult:
    """Return the result of the last step of `output`.

    The first step reads the text of `source`, or else `objects`, the results of its parts.
    """
    commands: list[tuple[str, ...]] = []
    with private_folder() as folder:
        inputs = _write_inputs(folder, description, source, objects)
        paths = inputs
        entries = ",".join(source.entries)
        try:
            for step in output.steps_for(source.requires):
                target = folder / f"{step.key}.{step.suffix}"
                names = tuple(map(str, paths))
                filled = {
                    **holes,
                    "input": names[0] if len(names) == 1 else names,
                    "output": str(target),
                    "entries": entries,
                }
                commands.append(fill_arguments(step.arguments, filled, libraries))
                completed = run_checked(
                    description, commands[-1], folder, source=source, runner=runner
                )
                paths = [target]
        finally:
            keep_run(inputs, description, commands)
        data = _read_result(target, step, commands[-1], folder)
        return StepsResult(data, completed.whole_stderr)


def _write_inputs(
    folder: Path, description: Description, source: Source, objects: Sequence[bytes]
) -> list[Path]:
    if not objects:
        return [write_input(folder / description.input, source.text.encode())]
    return [
        write_input(folder / f"part{number}", data)
        for number, data in enumerate(objects)
    ]


def run_checked(
    description: Description,
    command: tuple[str, ...],
    folder: Path,
    *,
    source: Source | None = None,
    runner: ToolRunner | None = None,
) -> Completed:
    """Run a tool in `folder`. Raise ToolchainError if it fails, or ignores an option."""
    completed = (runner or ToolRunner()).run(command, folder)
    phrases = [
        text for text in description.failures.phrases if text in completed.stderr
    ]
    status = completed.status
    if status == 0 and not phrases:
        return completed
    what = "failed" if status else f"warned: {phrases[0]}"
    why = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    raise ToolchainError(
        f"{_tool_name(description, command)} {what}",
        where=_guilty_line(description, source, completed.stderr),
        why=why,
        remedy=description.failures.remedy(completed.stderr),
        command=command,
        stderr=completed.stderr,
        kept=folder,
    )


def _tool_name(description: Description, command: tuple[str, ...]) -> str:
    own = [tool.names[-1] for tool in description.tools.values() if tool.is_own_python]
    is_own = own and command[0] == sys.executable
    return own[0] if is_own else Path(command[0]).name


def _guilty_line(
    description: Description, source: Source | None, stderr: str
) -> str | None:
    """Return the statement of the line that stderr names, or the line if no statement is known."""
    match = description.failures.line.search(stderr)
    if match is None or source is None:
        return None
    number = int(match[1])
    if 0 < number <= len(source.line_map) and source.line_map[number - 1]:
        return source.line_map[number - 1]
    return f"line {number} of the {source.language} text"


def _read_result(
    path: Path, step: BuildStep, command: tuple[str, ...], folder: Path
) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ToolchainError(
            f"step {step.key} wrote nothing",
            why=str(error),
            command=command,
            kept=folder,
        ) from error
