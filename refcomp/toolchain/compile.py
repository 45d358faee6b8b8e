"""The door from text to machine code: a Source and target options to a Binary, through the cache.

Requires: the text is complete for its language; LLVM IR states its triple and data layout.
Ensures: the same text, options and tools give the same Binary. Once it is in the cache, no tool is
started, and it is found even after the tools were removed. If $REFCOMP_KEEP names a folder, the
tools always run, and their inputs are kept there.
Refuses: UserError for an unknown option, output or language; ToolchainError if a tool or library is
missing, fails or hangs.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import Cache, default_cache
from refcomp.foundation.dump import is_keeping
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain.description import (
    HOLE,
    BuildOutput,
    Description,
    load_description,
)
from refcomp.toolchain.find import FoundTools, find_file, find_tool, find_tools
from refcomp.toolchain.host import check_options, host_part
from refcomp.toolchain.places import environment_read_by_tools, file_path
from refcomp.toolchain.remember import recall
from refcomp.toolchain.run import ToolRunner
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
        output: for `llvm` one of `so`, `o`, `bc`, `asm` and `ll`; for `rocm` `hsaco`.
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
    asked = request(description, target_options, output, cache=cache)
    runner = ToolRunner(timeout_s)
    entry = asked.result(source, runner=runner)
    if not asked.output.has_report:
        return ReportedBinary(Binary(entry, asked.output.format), "")
    code, report = _unpack(entry)
    binary = Binary(code, asked.output.format)
    return ReportedBinary(binary, report.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """An output of a toolchain with all options, and the cache for its results."""

    chain: Description
    output: BuildOutput
    options: Mapping[str, str]
    store: Cache

    def result(
        self, source: Source, objects: Sequence[bytes] = (), *, runner: ToolRunner
    ) -> bytes:
        """Return the result for a text, or for the results of its parts, from the cache if there.

        An output with a report gives the code and the report in one (`_pack`).
        """
        chain = self.chain
        if source.language != chain.language:
            raise UserError(
                f"the {chain.name} toolchain takes {chain.language or 'no text'}, "
                f"not {source.language}",
                where=str(chain.path),
            )

        def make(tools: FoundTools) -> bytes:
            return self._run(tools, source, objects, runner)

        # The user wants to see the runs, so the cache is not read.
        if is_keeping():
            return make(find_tools(chain))
        return recall(self.store, chain, _key_parts(self, source, objects), make)

    def _run(
        self,
        tools: FoundTools,
        source: Source,
        objects: Sequence[bytes],
        runner: ToolRunner,
    ) -> bytes:
        chain = self.chain
        check_options(chain, tools, self.options, self.store)
        libraries = _libraries(chain, source, self.output, self.options)
        holes: dict[str, str | tuple[str, ...]] = {
            **_tool_paths(chain, tools, self.output, source),
            **_option_holes(chain, self.options),
        }
        steps = tuple(step.for_version(tools.version) for step in self.output.steps)
        result = run_steps(
            chain,
            replace(self.output, steps=steps),
            source,
            holes,
            libraries=libraries,
            objects=objects,
            runner=runner,
        )
        return _pack(result) if self.output.has_report else result.data


def request(
    description: str | Description,
    target_options: Mapping[str, str],
    output: str,
    *,
    cache: Cache | None = None,
) -> OutputRequest:
    """Return a checked request; the arguments are those of `compile_source`."""
    chain = description
    if not isinstance(chain, Description):
        chain = load_description(chain)
    if output not in chain.outputs:
        raise UserError(
            f"the {chain.name} toolchain has no output {output!r}",
            where=str(chain.path),
            remedy=f"use one of {', '.join(chain.outputs)}",
        )
    options = _filled_options(chain, target_options)
    store = default_cache() if cache is None else cache
    return OutputRequest(chain, chain.outputs[output], options, store)


def _pack(result: StepsResult) -> bytes:
    """Return code and report as one entry of the cache: the size of the code, then both."""
    size = len(result.data).to_bytes(_SIZE_BYTES, "little")
    return size + result.data + result.report


def _unpack(entry: bytes) -> tuple[bytes, bytes]:
    end = _SIZE_BYTES + int.from_bytes(entry[:_SIZE_BYTES], "little")
    return entry[_SIZE_BYTES:end], entry[end:]


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
    asked: OutputRequest, source: Source, objects: Sequence[bytes]
) -> tuple[str, ...]:
    chain, output, options = asked.chain, asked.output, asked.options
    steps = [(step.arguments, step.before) for step in output.steps]
    settings: list[object] = [sorted(options.items()), steps, sorted(source.requires)]
    settings.append(source.entries)
    if output.has_report:
        settings.append("with report")
    if environment := environment_read_by_tools(chain):
        settings.append(sorted(environment.items()))
    text = json.dumps(settings)
    digests = [hashlib.sha256(data).hexdigest() for data in objects]
    host = host_part(chain, options)
    return ("compile", source.text, output.format, text, host, *digests)


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
