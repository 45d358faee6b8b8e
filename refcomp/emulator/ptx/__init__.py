"""An interpreter of PTX on numpy arrays, which runs kernels for NVIDIA GPUs without a GPU.

PTX is a typed assembly language with any number of registers. nvcc and LLVM print it. All threads
of some blocks run together: an instruction is one operation on arrays, which have an element for
each thread. The interpreter also checks the kernel for errors. It shares its model of memory with
the emulator of AMD's machine code. It does not import the compiler, which it judges.

- text/: PTX as read
- instructions/: what each instruction does to values
- machine/: threads, registers and the spaces of memory
- execution/: launches of kernels, and the order in which threads run
- observers/: data races
- run.py: one kernel on numpy arrays
- ledger.py: which instructions were compared with a reference
- cuda.py, loaded_kernels.py: the names of pycuda
"""
