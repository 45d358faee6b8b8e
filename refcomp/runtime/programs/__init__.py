"""Programs for devices: the host's part runs in Python, kernels on the device.

program.py         a Program as a callable
host_walk.py       the host function, compiled to Python closures
host_integers.py   its integer expressions
device_module.py   the kernels of a module, launched by name
bare_kernel.py     kernels of code objects that other compilers wrote
kernel_lines.py    errors that name lines of the kernels' loop IR
"""
