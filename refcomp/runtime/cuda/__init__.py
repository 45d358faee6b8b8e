"""NVIDIA GPUs, through pycuda."""
