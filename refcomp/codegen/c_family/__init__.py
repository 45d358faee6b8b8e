"""Statements and expressions -> any dialect of C, spelled by templates/c_family/.

    function.py       state of one kernel: its text, names, types and operands
    statements.py     one function for each class of statement
    expressions.py    one function for each class of expression
    memory.py         loads and stores
    conversions.py    casts, and the form of values in memory

A dialect adds a folder of templates, and a module that prints kernels and their parameters:
`refcomp/codegen/opencl/` is the example.
"""
