"""From a function of the loop IR to a callable: which passes run, which compiler, which device.

pipeline.py          the passes of each kind of target, in order, each with its reason
compile_kernels.py   kernels -> the code of a device
devices.py           the device that a target's name means
kernel_resources.py  registers and memory that kernels take, and which loop to change
"""
