"""Results of tools in the cache, by their inputs and by the tools that made them.

A record beside each result, without the identity of the tools, names the latest result for the same
inputs. It is used only if no tool is found at all. On a hit no tool is started.
"""

from collections.abc import Callable

from refcomp.foundation.cache import Cache, Label
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import Description
from refcomp.toolchain.find import FoundTools, find_tools

# The first of the parts -> how the list of the cache calls the result.
_KINDS = {
    "compile": "code",
    "disassemble": "disassembly",
    "facts": "processor",
    "option": "accepted option",
    "known": "accepted options",
}


def recall(
    cache: Cache,
    description: Description,
    parts: tuple[str, ...],
    make: Callable[[FoundTools], bytes],
) -> bytes:
    """Return the result of `make` for the inputs `parts`, from the cache if it is there.

    Raises ToolchainError if it is not there and the tools are not found, and all errors of `make`.
    """
    record = Cache.key("without tools", description.name, *parts)
    try:
        tools = find_tools(description)
    except ToolchainError:
        latest = cache.get(record)
        data = None if latest is None else cache.get(latest.decode())
        if data is None:
            raise
        return data
    key = Cache.key("by tools", tools.identity, description.name, *parts)

    def make_and_record() -> bytes:
        data = make(tools)
        cache.put(record, key.encode(), Label("latest result", description.name))
        return data

    kind = _KINDS.get(parts[0], parts[0])
    return cache.get_or_make(key, make_and_record, Label(kind, description.name))
