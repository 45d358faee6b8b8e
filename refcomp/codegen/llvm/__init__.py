"""Functions at the host level -> LLVM IR, spelled by templates/llvm/.

    module.py         prints a file of functions
    function.py       state of one function: its text, names, types and constants
    statements.py     one function for each class of statement
    expressions.py    one function for each class of expression
    memory.py         loads and stores
    imports.py        LLVM IR of the user's own
    separate_imports.py    several texts of it, kept apart
    kernels.py        parameters and indices of kernels, on every GPU
    kernel_statements.py    their arrays and atomic updates

A dialect of LLVM IR adds a folder of templates, and functions for the nodes that it prints
differently: `refcomp/codegen/amdgpu/` is the example.
"""
