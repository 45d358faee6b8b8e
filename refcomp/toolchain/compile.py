"""The door from text to machine code: a Source and target options to a Binary, through the cache.

Requires: the text is complete for its language; LLVM IR states its triple and data layout.
Ensures: the same text, options and tools give the same Binary. Once it is in the cache, no tool is
started, and it is found even after the tools were removed. If $REFCOMP_KEEP names a folder, the
tools always run, and their inputs are kept there.
Refuses: UserError for an unknown option, output or language; ToolchainError if a tool or library is
missing, fails or hangs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import Cache, default_cache
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain.description import (
    HOLE,
    BuildOutput,
    Description,
    load_description,
)
from refcomp.toolchain.find import FoundTools, find_file, find_tool, find_tools
from refcomp.toolchain.host import check_options, host_part
from refcomp.toolchain.keep import is_keeping
from refcomp.toolchain.places import environment_read_by_tools, file_path
from refcomp.toolchain.remember import recall
from refcomp.toolchain.run import tool_timeout_s
from refcomp.toolchain.steps import StepsResult, run_steps

# Of the number before an entry of the cache that has a report.
_SIZE_BYTES = 8


@dataclass(frozen=True, slots=True)
class ReportedBinary:
    """The code of a text, and the report of the tool that made it."""

    binary: Binary
    report: str  # '' for an output without `report = true`


def compile_source(
    source: Source,
    target_options: Mapping[str, str],
    output: str,
    *,
    description: str | Description = "llvm",
    cache: Cache | None = None,
    timeout_s: float | None = None,
) -> Binary:
    """Compile a text.

    Args:
        source: the text and its language.
        output: for `llvm` one of `so`, `o`, `asm` and `ll`; for `rocm` `hsaco`.
        description: the name of a toolchain, or a description of the user's (`read_description`).
        target_options: values for the holes of the toolchain file; for `llvm`: mcpu, mattr, passes.
        cache: the cache; the user's by default.
        timeout_s: seconds after which a tool is stopped; by default $REFCOMP_TOOL_TIMEOUT or 120.
    """
    return compile_with_report(
        source,
        target_options,
        output,
        description=description,
        cache=cache,
        timeout_s=timeout_s,
    ).binary


def compile_with_report(
    source: Source,
    target_options: Mapping[str, str],
    output: str,
    *,
    description: str | Description = "llvm",
    cache: Cache | None = None,
    timeout_s: float | None = None,
) -> ReportedBinary:
    """Compile a text as `compile_source` does, and also return the report of the tool."""
    chain = description
    if not isinstance(chain, Description):
        chain = load_description(chain)
    asked = _checked_output(chain, source, output)
    options = _filled_options(chain, target_options)
    store = default_cache() if cache is None else cache
    limit = tool_timeout_s() if timeout_s is None else timeout_s

    def make(tools: FoundTools) -> bytes:
        check_options(chain, tools, options, store)
        libraries = _libraries(chain, source, asked, options)
        holes: dict[str, str | tuple[str, ...]] = {
            **_tool_paths(chain, tools, asked, source),
            **_option_holes(chain, options),
        }
        steps = tuple(step.for_version(tools.version) for step in asked.steps)
        build = replace(asked, steps=steps)
        result = run_steps(chain, build, source, holes, libraries, limit)
        return _pack(result) if asked.has_report else result.data

    # The user wants to see the runs, so the cache is not read.
    if is_keeping():
        data = make(find_tools(chain))
    else:
        parts = _key_parts(chain, source, options, asked)
        data = recall(store, chain, parts, make)
    if not asked.has_report:
        return ReportedBinary(Binary(data, asked.format), "")
    code, report = _unpack(data)
    return ReportedBinary(Binary(code, asked.format), report.decode(errors="replace"))


def _pack(result: StepsResult) -> bytes:
    """Return code and report as one entry of the cache: the size of the code, then both."""
    size = len(result.data).to_bytes(_SIZE_BYTES, "little")
    return size + result.data + result.report


def _unpack(entry: bytes) -> tuple[bytes, bytes]:
    end = _SIZE_BYTES + int.from_bytes(entry[:_SIZE_BYTES], "little")
    return entry[_SIZE_BYTES:end], entry[end:]


def _checked_output(chain: Description, source: Source, output: str) -> BuildOutput:
    if source.language != chain.language:
        raise UserError(
            f"the {chain.name} toolchain takes {chain.language or 'no text'}, "
            f"not {source.language}",
            where=str(chain.path),
        )
    if output not in chain.outputs:
        raise UserError(
            f"the {chain.name} toolchain has no output {output!r}",
            where=str(chain.path),
            remedy=f"use one of {', '.join(chain.outputs)}",
        )
    return chain.outputs[output]


def _filled_options(chain: Description, given: Mapping[str, str]) -> dict[str, str]:
    for key in given:
        if key not in chain.options:
            raise UserError(
                f"the {chain.name} toolchain has no option {key!r}",
                where=f"-{key}={given[key]}",
                remedy=f"use {', '.join(chain.options)}",
            )
    return {
        key: given.get(key, option.default) for key, option in chain.options.items()
    }


def _option_holes(
    chain: Description, options: Mapping[str, str]
) -> dict[str, str | tuple[str, ...]]:
    return {
        key: tuple(value.split(",")) if chain.options[key].is_list else value
        for key, value in options.items()
    }


def _key_parts(
    chain: Description, source: Source, options: dict[str, str], output: BuildOutput
) -> tuple[str, ...]:
    steps = [(step.arguments, step.before) for step in output.steps]
    settings: list[object] = [sorted(options.items()), steps, sorted(source.requires)]
    settings.append(source.entries)
    if output.has_report:
        settings.append("with report")
    if environment := environment_read_by_tools(chain):
        settings.append(sorted(environment.items()))
    text = json.dumps(settings)
    return ("compile", source.text, output.format, text, host_part(chain, options))


def _tool_paths(
    chain: Description, tools: FoundTools, output: BuildOutput, source: Source
) -> dict[str, str]:
    """Return tools and files of all steps by key, also tools that only some texts need.

    The path of a file that is not found is ''.
    """
    paths = dict(tools.paths)
    for step in output.steps_for(source.requires):
        for key in HOLE.findall(" ".join(step.arguments)):
            if key in chain.tools and key not in paths:
                paths[key] = find_tool(chain, key)
            elif key in chain.files:
                paths[key] = file_path(chain.files[key]) or ""
    return paths


def _libraries(
    chain: Description, source: Source, output: BuildOutput, options: Mapping[str, str]
) -> tuple[str, ...]:
    """Return paths of libraries: the user's, the optional ones that exist, the required ones."""
    if not any("{libraries}" in step.arguments for step in output.steps):
        return ()
    always = [file_path(file) for file in chain.files.values() if file.is_always_linked]
    required = [_required_library(chain, name) for name in sorted(source.requires)]
    own = options.get("libs", "").split(",")
    # Each path once. An optional library that does not exist has no path.
    return tuple(dict.fromkeys(filter(None, [*own, *always, *required])))


def _required_library(chain: Description, name: str) -> str:
    if name not in chain.files:
        raise ToolchainError(
            f"the text needs {name!r}, which the {chain.name} toolchain does not describe",
            where=str(chain.path),
            remedy=f"add it under files; it has {', '.join(chain.files)}",
        )
    return find_file(chain, name)
