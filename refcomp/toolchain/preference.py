"""Several toolchains for one language, in order of preference: the first that is found compiles.

A tool that an environment variable of its own names, such as REFCOMP_NVCC, is never passed over.
"""

import os
from collections.abc import Mapping, Sequence

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.compile import ReportedBinary, compile_with_report
from refcomp.toolchain.description import Description, load_description
from refcomp.toolchain.find import find_tools


def first_usable(names: Sequence[str]) -> str:
    """Return the first of `names` whose tools are found.

    Raises:
        ToolchainError: none is; the message names the tools and the installation of each.
    """
    errors: list[ToolchainError] = []
    for name in names:
        chain = load_description(name)
        try:
            find_tools(chain)
        except ToolchainError as error:
            if _is_chosen(chain):
                raise
            errors.append(error)
        else:
            return name
    raise _none_usable(names, errors)


def compile_by_first(
    source: Source, target_options: Mapping[str, str], output: str, names: Sequence[str]
) -> ReportedBinary:
    """Compile a text by the first of the toolchains `names` whose tools are found.

    If none is found, a result in the cache is used, as `compile_with_report` does.
    """
    try:
        names = (first_usable(names),)
    except ToolchainError as missing:
        for name in names:
            try:
                return compile_with_report(
                    source, target_options, output, description=name
                )
            except ToolchainError:
                continue
        raise missing from None
    return compile_with_report(source, target_options, output, description=names[0])


def _is_chosen(chain: Description) -> bool:
    """Return True if a variable names a tool of the toolchain."""
    return any(
        os.environ.get(tool.variable) for tool in chain.tools.values() if tool.variable
    )


def _none_usable(
    names: Sequence[str], errors: Sequence[ToolchainError]
) -> ToolchainError:
    chains = [load_description(name) for name in names]
    tools = [tool.names[-1] for chain in chains for tool in chain.needed_tools]
    return ToolchainError(
        f"no usable {' and no '.join(tools)}",
        where="; ".join(error.where or "" for error in errors),
        why="; ".join(error.why or "" for error in errors),
        remedy="; or ".join(error.remedy or "" for error in errors),
    )
