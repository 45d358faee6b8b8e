"""From a function of the loop IR to a callable: passes, compiler and device of each target.

steps.py             the steps of every pipeline, in order, each with its reason
backend.py           the record of a back end, and the register of all
backends/            refcomp's own records: llvm, interp, opencl, rocm
pipeline.py          the steps of a kind of target, found and run
compile.py           functions -> code: the whole pipeline, then the compiler
progress.py          a progress bar for builds that take long
outside_calls.py     calls that leave the loop IR, found or refused
code_objects.py      kernels of bare code objects
text_forms.py        objects, assembly and bitcode of a module's LLVM IR
devices.py           the device that a target's name means
kernel_resources.py  kernels that take too much of a GPU: which loop to change
amd_resources.py     registers and memory that kernels take of an AMD GPU
nvidia_resources.py  the same of an NVIDIA GPU
"""
