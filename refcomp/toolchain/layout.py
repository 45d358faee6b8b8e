"""Facts that the text of a kernel depends on: the version of LLVM, and the device's data layout.

The text must state the layout, because the optimizer of LLVM 15 and 16 does not know it. llc knows
it. The cache remembers both facts.
"""

import re

from refcomp.foundation.cache import default_cache
from refcomp.foundation.errors import ToolchainError
from refcomp.foundation.private_folder import private_folder
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import FoundTools
from refcomp.toolchain.remember import recall
from refcomp.toolchain.steps import fill_arguments, run_checked, write_input

_LAYOUT = re.compile(r'target datalayout = "([^"]*)"')


def device_layout(description: str) -> str:
    """Return the data layout of the device for which the toolchain `description` compiles."""
    chain = load_description(description)
    arguments = chain.steps["probe"].arguments

    def ask(tools: FoundTools) -> bytes:
        with private_folder() as folder:
            source = write_input(folder / chain.input, b"")
            command = fill_arguments(arguments, {**tools.paths, "input": str(source)})
            text = run_checked(chain, command, folder).stdout.decode(errors="replace")
        match = _LAYOUT.search(text)
        if match is None:
            raise ToolchainError(
                "llc's answer holds no data layout", why=text, command=command
            )
        return match[1].encode()

    return recall(default_cache(), chain, ("layout", *arguments), ask).decode()


def llvm_major(description: str) -> int:
    """Return the major version of the tools of the toolchain `description`."""
    chain = load_description(description)

    def ask(tools: FoundTools) -> bytes:
        return b"%d" % tools.version[0]

    # From the cache, since a text must be the same after the tools were removed.
    return int(recall(default_cache(), chain, ("major",), ask))
