"""OpenCL devices through pyopencl; driver.py is the door."""
