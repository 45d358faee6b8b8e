"""CUDA kernels on this machine, a thread of C++ for each CUDA thread: a judge that needs no GPU."""
