"""Results of tools, kept in the cache under their inputs and the tools that made them.

Beside each result a record without the tools' identity tells which result was the last for the
same inputs: it serves when no tool is found at all, and only then. On a hit no tool is started.
"""

from collections.abc import Callable

from refcomp.foundation.cache import Cache
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import Description
from refcomp.toolchain.find import FoundTools, find_tools


def recall(
    cache: Cache,
    description: Description,
    parts: tuple[str, ...],
    make: Callable[[FoundTools], bytes],
) -> bytes:
    """What `make` gives for the inputs `parts`: from the cache, or made and kept.

    Raises ToolchainError when it is not there and the tools are not found, and whatever `make`
    raises.
    """
    record = Cache.key("without tools", description.name, *parts)
    try:
        tools = find_tools(description)
    except ToolchainError:
        data = _last_result(cache, record)
        if data is None:
            raise
        return data
    key = Cache.key("by tools", tools.identity, description.name, *parts)

    def make_and_record() -> bytes:
        data = make(tools)
        cache.put(record, key.encode())
        return data

    return cache.get_or_make(key, make_and_record)


def _last_result(cache: Cache, record: str) -> bytes | None:
    key = cache.get(record)
    return None if key is None else cache.get(key.decode())
