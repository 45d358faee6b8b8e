"""Programs for devices: the host function runs in Python, its kernels run on the device.

program.py         a Program as a callable
host_walk.py       the host function, compiled to Python closures
host_integers.py   its integer expressions
device_module.py   the kernels of a module
bare_kernel.py     kernels of code objects that other compilers wrote
kernel_lines.py    explanations of errors that name lines of the kernels' loop IR
"""
