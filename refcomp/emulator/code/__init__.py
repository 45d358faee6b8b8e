"""Code objects and their instructions, as read: nothing runs here.

code_object.py   what a loader places where, and where kernels begin
assembly.py      instructions, read off the text of llvm-objdump
modifiers.py     the modifiers of an instruction
findings.py      what the emulator finds wrong with a kernel
"""
