"""Kernels at the device level -> OpenCL C 1.2; module.py is the door."""
