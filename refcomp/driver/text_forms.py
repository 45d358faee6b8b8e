"""Objects, assembly and bitcode, made of the LLVM IR of a module when it is saved.

Requires: the text is complete and states its triple and data layout.
Ensures: the code equals that of the module, since text, options and tools are the same.
"""

from __future__ import annotations

from refcomp.foundation.artifacts import Source
from refcomp.foundation.c_functions import library_paths
from refcomp.foundation.target import as_target
from refcomp.runtime.files.code_tools import (
    register_code_tools,
    register_data_holder,
    register_describer,
)

# Suffix -> output of the toolchain `llvm`.
_OUTPUTS = {".o": "o", ".s": "asm", ".bc": "bc", ".so": "so"}
# The names of all functions of libmvec begin with these letters.
_VECTOR_MATHS = "@_ZGV"


def make_code(text: str, target: str, suffix: str) -> bytes:
    """Return the object, the assembly, the bitcode or the shared object of a text in LLVM IR.

    Args:
        text: the LLVM IR of a whole module.
        target: that of the module, whose options the tools receive.
        suffix: `.o`, `.s`, `.bc` or `.so`.

    Raises:
        ToolchainError: a tool is missing or fails.
    """
    from refcomp.toolchain import compile_source, llvm_options  # noqa: PLC0415  (rare)

    options = llvm_options(as_target(target))
    requires: frozenset[str] = frozenset()
    if suffix == ".so":
        options["libs"] = ",".join(library_paths(options.get("libs", "")))
        requires = frozenset({"libmvec"} if _VECTOR_MATHS in text else ())
    source = Source(text, "llvm", requires=requires)
    return compile_source(source, options, _OUTPUTS[suffix]).data


def describe(text: str, description: bytes) -> str:
    """Return a text in LLVM IR whose object holds `description`."""
    from refcomp.codegen.llvm.linked_description import (  # noqa: PLC0415  (rare)
        with_description,
    )

    return with_description(text, description)


def hold_data(data: bytes, description: bytes = b"") -> bytes:
    """Return a shared object for this host that holds `data`, and nothing that runs.

    Args:
        data: any bytes.
        description: of functions, which `refcomp.system_lib` finds; b"" for none.

    Raises:
        ToolchainError: a tool is missing or fails.
    """
    from refcomp.codegen.llvm.held_data import print_held_data  # noqa: PLC0415  (rare)
    from refcomp.toolchain import (  # noqa: PLC0415  (rare)
        compile_source,
        host_triple_and_layout,
    )

    triple, layout = host_triple_and_layout()
    text = print_held_data(data, triple=triple, layout=layout)
    if description:
        text = describe(text, description)
    return compile_source(Source(text, "llvm"), {"passes": "default<O1>"}, "so").data


register_code_tools(make_code)
register_data_holder(hold_data)
register_describer(describe)
