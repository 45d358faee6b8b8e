"""An interpreter of PTX on numpy arrays: runs kernels for NVIDIA GPUs without a GPU.

PTX is a typed assembly language with any number of registers. NVIDIA's nvcc and LLVM print it. All
threads of some blocks run together: an instruction is one operation on arrays that have an element
for each thread. On the way, the interpreter finds errors of kernels, as that for AMD's machine
code does, with which it shares the memory. It imports nothing of what it judges.

- text/: PTX as read
- instructions/: what each instruction does to values
- machine/: threads, registers and the spaces of memory
- execution/: launches of kernels, and the order in which threads run
- observers/: data races
- run.py: one kernel on numpy arrays
- ledger.py: which instructions were compared with a reference
- cuda.py, loaded_kernels.py: the names of pycuda
"""
