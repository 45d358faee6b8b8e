"""C functions of the user's own as LLVM IR for this host, for the pragma `import_c`.

Requires: clang, version 15 or newer. Ensures: floats round after every operation, and integers
wrap; equal texts give equal texts. Clang runs without a shell, in a private folder, unless the
cache has the result.
"""

from refcomp.foundation.artifacts import Source
from refcomp.toolchain.compile import compile_source

_NAMES_OF_FILES = ("; ModuleID", "source_filename")


def llvm_of_c(text: str) -> str:
    """Return the LLVM IR of C functions.

    Raises ToolchainError if clang is missing, or refuses the text; it shows clang's messages.
    """
    source = Source(text, "c")
    binary = compile_source(source, {}, "ll", description="c_functions")
    lines = binary.data.decode().splitlines(keepends=True)
    # These name the private folder, which is another one each time.
    return "".join(line for line in lines if not line.startswith(_NAMES_OF_FILES))
