"""C functions of the user's own as LLVM IR for this host, for the pragma `import_c`.

Requires: clang, version 15 or newer. Ensures: floats round after every operation, and integers
wrap. Clang runs without a shell, in a private folder, at every call: the text may include files,
and no cache knows when these change.
"""

from tempfile import TemporaryDirectory

from refcomp.foundation.artifacts import Source
from refcomp.foundation.cache import Cache
from refcomp.toolchain.compile import compile_source

_NAMES_OF_FILES = ("; ModuleID", "source_filename")


def llvm_of_c(text: str) -> str:
    """Return the LLVM IR of C functions.

    Raises ToolchainError if clang is missing, or refuses the text; it shows clang's messages.
    """
    source = Source(text, "c")
    with TemporaryDirectory() as folder:
        cache = Cache(folder)
        binary = compile_source(
            source, {}, "ll", description="c_functions", cache=cache
        )
    lines = binary.data.decode().splitlines(keepends=True)
    # These name the private folder, which is another one each time.
    return "".join(line for line in lines if not line.startswith(_NAMES_OF_FILES))
