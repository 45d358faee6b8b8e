"""Code objects and their instructions, as read. Nothing runs here.

- code_object.py: what a loader places in memory, and where kernels begin
- assembly.py: instructions, read from the text of llvm-objdump
- modifiers.py: the modifiers of an instruction
- findings.py: reports of errors in a kernel
"""
