"""Loop IR -> text in an output language. Python decides what is printed; templates/ spells it.

    llvm/        functions of the host, as LLVM IR
    amdgpu/      kernels for AMD GPUs, a dialect of llvm/
    c_family/    what all dialects of C share
    opencl/      kernels in OpenCL C, a dialect of c_family/

A printer walks the loop IR. It computes names, types and operands, and passes them to macros.
spelling.py loads the macros, accumulator.py collects the text, and line_map.py remembers the
statement that each line came from.
"""
