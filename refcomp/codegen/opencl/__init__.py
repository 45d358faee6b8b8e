"""Kernels at the device level -> OpenCL C 1.2: see module.py."""
